// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package sops encrypts the values of Secrets in the format of SOPS for recipients of age, so that sops, Flux and
// other readers of that format decrypt them. SOPS' own packages are not linked: each of them pulls in the clients
// of all clouds.
//
// SOPS generates a new data key and new initialisation vectors each time, so that the same Secret never looks the
// same twice. Published output must not change if the Secret does not, and an encrypter for a recipient cannot read
// the existing output. Hence all random values in SOPS and age are derived here, by HKDF and HMAC with SHA-256,
// from a seed known only to the publisher, and from the plaintext and its recipients. The same plaintext yields the
// same bytes; a different one yields unrelated bytes (as in RFC 5297, a repeated vector reveals a repeated message
// and no more). Without the seed, a guess of the plaintext cannot be verified. With it, it can.
package sops
