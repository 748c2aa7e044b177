# SPDX-FileCopyrightText: The Prerig Authors
# SPDX-License-Identifier: Apache-2.0
#
# Targets:
#   fn                  the KRM function, built in the builder stage (the default)
#   pipeline            prerig, the command and the daemon, built in the builder stage
#   fn-prebuilt, pipeline-prebuilt
#                       the same images from dist/image and dist/image-pipeline, which `make dist-image` and
#                       `make dist-image-pipeline` fill on the host; they pull nothing
#
# Each image holds a static binary, /etc/passwd with the user `nobody` (kustomize and kpt run functions as that user, by name), and
# the licence texts; the pipeline's also the renderer and Kubernetes' own validation, which prerig starts. The function needs no network,
# no writable file system, no environment and no arguments.
#
# The pipeline's image also holds the CA certificates of the machine or stage that built it, as it talks to Git hosts and
# registries, and /var/lib/prerig for its state: the only directory that it writes to, so mount a volume there. It looks
# for pipelines, policies and secrets in /etc/prerig. Other arguments replace all of the default ones.
#
#   docker run --read-only --cap-drop ALL --security-opt no-new-privileges -p 8080:8080 \
#     -v prerig-state:/var/lib/prerig -v "$PWD/pipelines:/etc/prerig/pipelines:ro" localhost/prerig:dev

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

FROM scratch AS pipeline-labels
ARG VERSION=dev
ARG REVISION=
LABEL org.opencontainers.image.title="prerig" \
      org.opencontainers.image.description="Renders pipelines on events, sidecars included, and commits or pushes the result" \
      org.opencontainers.image.url="https://github.com/prerig/prerig" \
      org.opencontainers.image.source="https://github.com/prerig/prerig" \
      org.opencontainers.image.documentation="https://github.com/prerig/prerig#readme" \
      org.opencontainers.image.vendor="The Prerig Authors" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# By number, as Kubernetes cannot tell from a name that it is not root (runAsNonRoot).
USER 65534:65534
# Argo CD's plugin server, which runs in this image too, looks for prerig there.
ENV PATH=/usr/local/bin
WORKDIR /etc/prerig
ENTRYPOINT ["/usr/local/bin/prerig"]
CMD ["serve", "--state", "/var/lib/prerig", "--listen", ":8080"]
EXPOSE 8080

FROM fn-labels AS fn-prebuilt
COPY dist/image/ /

FROM pipeline-labels AS pipeline-prebuilt
COPY dist/image-pipeline/ /
# The directory in it belongs to the user, and so does an empty volume that is mounted there.
COPY --chown=65534:65534 dist/image-pipeline-state/ /var/lib/

FROM --platform=$BUILDPLATFORM docker.io/library/golang:${GO_VERSION}-bookworm AS source
WORKDIR /src
COPY go.mod go.sum ./
COPY pipeline/cmd/prerig-validate/go.mod pipeline/cmd/prerig-validate/go.sum pipeline/cmd/prerig-validate/
RUN go mod download && cd pipeline/cmd/prerig-validate && go mod download
COPY . .

FROM source AS build-pipeline
ARG TARGETOS TARGETARCH VERSION=dev
RUN GOOS=${TARGETOS} GOARCH=${TARGETARCH} make dist-image-pipeline VERSION=${VERSION}

FROM pipeline-labels AS pipeline
COPY --from=build-pipeline /src/dist/image-pipeline/ /
COPY --from=build-pipeline --chown=65534:65534 /src/dist/image-pipeline-state/ /var/lib/

FROM source AS build
ARG TARGETOS TARGETARCH VERSION=dev
RUN GOOS=${TARGETOS} GOARCH=${TARGETARCH} make dist-image VERSION=${VERSION}

FROM fn-labels AS fn
COPY --from=build /src/dist/image/ /
