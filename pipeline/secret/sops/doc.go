// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package sops encrypts the values of Secrets in the format of SOPS for recipients of age, so that sops, Flux and whatever else
// reads that format decrypt them. SOPS' own packages are not linked: each of them brings the clients of all clouds along.
//
// SOPS takes a new data key and new initialisation vectors each time, so that the same Secret never looks the same twice. What is
// published must not change where the Secret does not, and who encrypts for a recipient cannot read what is there. Hence all that is
// random in SOPS and age is derived here, by HKDF and HMAC with SHA-256, from a seed that nobody but the publisher has, and from what
// is encrypted, for whom. The same plaintext gives the same bytes; another one gives others, that have nothing in common with them
// (as in RFC 5297, a repeated vector stands for a repeated message and for nothing else). Without the seed it cannot be found out
// whether a guess of the plaintext is right. With it, it can.
package sops
