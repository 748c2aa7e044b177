# SPDX-FileCopyrightText: The Prerig Authors
# SPDX-License-Identifier: Apache-2.0
#
# Targets:
#   fn            the KRM function, built in the builder stage (the default)
#   fn-prebuilt   the same image from dist/image, which `make dist-image` fills on the host; pulls nothing
#
# The image holds the binary, /etc/passwd with nobody (kustomize and kpt run functions as that user, by name), and the
# licence texts. It needs no network, no writable file system, no environment and no arguments.

ARG GO_VERSION=1.26.8

FROM scratch AS fn-labels
ARG VERSION=dev
ARG REVISION=
LABEL org.opencontainers.image.title="prerig-fn" \
      org.opencontainers.image.description="KRM function that injects sidecars at build time, as the mesh's webhook would" \
      org.opencontainers.image.url="https://github.com/prerig/prerig" \
      org.opencontainers.image.source="https://github.com/prerig/prerig" \
      org.opencontainers.image.documentation="https://github.com/prerig/prerig#readme" \
      org.opencontainers.image.vendor="The Prerig Authors" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
USER nobody
ENTRYPOINT ["/usr/local/bin/prerig-fn"]

FROM fn-labels AS fn-prebuilt
COPY dist/image/ /

FROM --platform=$BUILDPLATFORM docker.io/library/golang:${GO_VERSION}-bookworm AS build
ARG TARGETOS TARGETARCH VERSION=dev
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN GOOS=${TARGETOS} GOARCH=${TARGETARCH} make dist-image VERSION=${VERSION}

FROM fn-labels AS fn
COPY --from=build /src/dist/image/ /
