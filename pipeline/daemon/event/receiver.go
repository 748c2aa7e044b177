// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/pipeline/internal/process/budget"
)

// Receiver accepts the deliveries of one sender at /hook/NAME.
type Receiver struct {
	// Name is the last part of the URL's path.
	Name string
	// Provider is the kind of the sender.
	Provider Provider
	// Secret is the key of its signature, or its token. It is required unless Insecure is set.
	Secret []byte
	// Secrets returns all currently valid secrets, one of which signs a delivery. It replaces Secret if set, so
	// that a secret can be rotated while deliveries arrive.
	Secrets func() [][]byte
	// Token verifies the tokens of a sender whose deliveries are signed by another party: it is required for
	// Artifact Registry, and replaces a secret.
	Token *TokenVerifier
	// Insecure accepts deliveries that are not signed. With a secret it is an error.
	Insecure bool
}

// senderKind is what is particular to a provider.
type senderKind struct {
	verify verifyFunc
	parse  bodyParser
	// delivery lists the headers that can identify a delivery; the first one present does.
	delivery []string
	// id names a delivery by its content instead.
	id func(h http.Header, body []byte) string
	// repeats reports whether the bodies of two deliveries about different events can be equal, because they
	// contain neither time nor id.
	repeats bool
	// moves reports whether equal bodies can describe a reference that was moved forward, back, and forward again.
	// [moves] distinguishes these from repetitions if no header identifies the delivery.
	moves bool
}

var senders = map[Provider]senderKind{
	GitHub: {verify: hmacHex("X-Hub-Signature-256", false), parse: parseForms(parseGitHub), delivery: []string{"X-GitHub-Delivery"}, moves: true},
	GitLab: {verify: verifyGitLab, parse: parseGitLab,
		delivery: []string{"Idempotency-Key", "X-Gitlab-Event-UUID"}, id: signedID, moves: true},
	Gitea: {verify: firstHeader("X-Gitea-Signature", "X-Hub-Signature-256"),
		parse: parseForms(parseGiteaEvents("X-Gitea-Event", "X-Gogs-Event")), delivery: []string{"X-Gitea-Delivery"}, moves: true},
	Gogs: {verify: hmacHex("X-Gogs-Signature", true), parse: parseForms(parsePush("X-Gogs-Event")), delivery: []string{"X-Gogs-Delivery"}, moves: true},
	Forgejo: {verify: firstHeader("X-Forgejo-Signature", "X-Gitea-Signature", "X-Hub-Signature-256"),
		parse: parseForms(parseGiteaEvents("X-Forgejo-Event", "X-Gitea-Event")), delivery: []string{"X-Forgejo-Delivery", "X-Gitea-Delivery"}, moves: true},
	BitbucketCloud:   {verify: hmacHex("X-Hub-Signature", false), parse: parseBitbucketCloud, delivery: []string{"X-Request-UUID"}, moves: true},
	BitbucketServer:  {verify: hmacHex("X-Hub-Signature", false), parse: parseBitbucketServer, delivery: []string{"X-Request-Id"}, moves: true},
	AzureDevOps:      {verify: basicOrToken, parse: parseAzureDevOps},
	Flux:             {verify: signatureOrToken, parse: parseFlux},
	Distribution:     {verify: plainToken("Authorization", "Bearer "), parse: parseDistribution},
	Harbor:           {verify: plainToken("Authorization", "Bearer "), parse: parseHarbor},
	Quay:             {verify: plainToken("Authorization", "Bearer "), parse: parseQuay, repeats: true},
	DockerHub:        {verify: plainToken("Authorization", "Bearer "), parse: parseDockerHub},
	ACR:              {verify: basicOrToken, parse: parseACR},
	ECR:              {verify: basicOrToken, parse: parseECR},
	ArtifactRegistry: {parse: parseArtifactRegistry, id: pubSubID},
	Artifactory:      {verify: verifyArtifactory, parse: parseArtifactory, repeats: true},
	Nexus:            {verify: hmacSHA1("X-Nexus-Webhook-Signature"), parse: parseNexus, delivery: []string{"X-Nexus-Webhook-Delivery"}},
	CloudEvents:      {verify: signatureOrToken, parse: parseCloudEvents, id: cloudEventsID},
	Generic:          {verify: signatureOrToken, parse: parseGeneric, delivery: []string{"X-Request-Id"}, repeats: true},
}

// Providers lists the names of all providers.
func Providers() []string {
	names := map[string]string{}
	for p := range senders {
		names[string(p)] = ""
	}
	return slices.Sorted(maps.Keys(names))
}

// signatureOrToken accepts an HMAC over the body if X-Signature is present, otherwise a bearer token.
func signatureOrToken(h http.Header, body, secret []byte, now time.Time) error {
	if h.Get("X-Signature") != "" {
		return hmacHex("X-Signature", false)(h, body, secret, now)
	}
	return plainToken("Authorization", "Bearer ")(h, body, secret, now)
}

// basicOrToken accepts the secret as the password of basic authentication, for any user, as a bearer token or as
// the whole header, and in X-Api-Key: these are the options of the webhooks of clouds.
func basicOrToken(h http.Header, body, secret []byte, now time.Time) error {
	_, password, basic := (&http.Request{Header: h}).BasicAuth()
	switch {
	case basic && secretEqual(password, secret) == 1:
		return nil
	case h.Get("Authorization") == "" && h.Get("X-Api-Key") != "":
		return plainToken("X-Api-Key")(h, body, secret, now)
	}
	return plainToken("Authorization", "Bearer ")(h, body, secret, now)
}

// Validate checks the receiver: a name that a path can hold, a known provider, a secret unless it is insecure.
func (r Receiver) Validate() error {
	switch {
	case r.Name == "" || strings.Trim(r.Name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "":
		return fmt.Errorf("checking receiver %q: the name must be of letters, digits, dots, - and _", r.Name)
	case senders[r.Provider].parse == nil:
		return fmt.Errorf("checking receiver %q: provider %q is not one of %s%s", r.Name, r.Provider, strings.Join(Providers(), ", "), strict.DidYouMean(string(r.Provider), Providers()))
	case r.Provider == ArtifactRegistry && r.Token == nil && !r.Insecure:
		return fmt.Errorf("checking receiver %q: it has no audience and email to check tokens by; set them, or declare it insecure", r.Name)
	case (r.Provider == ArtifactRegistry) != (r.Token != nil) && !r.Insecure || r.Token != nil && (len(r.Secret) > 0 || r.Insecure):
		return fmt.Errorf("checking receiver %q: audience and email are for artifact-registry alone, without a secret and not insecure", r.Name)
	case len(r.Secret) == 0 && !r.Insecure && r.Token == nil:
		return fmt.Errorf("checking receiver %q: it has no secret; set secret to a file that holds one, or declare it insecure", r.Name)
	case len(r.Secret) > 0 && r.Insecure:
		return fmt.Errorf("checking receiver %q: it has a secret and is declared insecure; only one of them can be meant", r.Name)
	}
	return nil
}

// CheckHeaders returns an error that wraps [ErrSignature] where no body could make a delivery right: its token is wrong, or its
// signature has no such form. It is asked before a body is read.
func (r Receiver) CheckHeaders(h http.Header, token string, now time.Time) error {
	if err := r.verifyDelivery(h, token, nil, now); err != nil && !errors.Is(err, errMismatch) {
		return err
	}
	return nil
}

// verifyDelivery checks a delivery against the receiver's secret.
//
// Docker Hub, Quay and others cannot sign. Their receiver's token may be in the URL (?token=…) if the sender cannot
// set a header.
func (r Receiver) verifyDelivery(h http.Header, token string, body []byte, now time.Time) error {
	if r.Insecure {
		return nil
	}
	if r.Token != nil {
		return r.Token.verifyBearerToken(h, now)
	}
	if token != "" && h.Get("Authorization") == "" && (r.Provider == Quay || r.Provider == DockerHub) {
		h = h.Clone()
		h.Set("Authorization", token)
	}
	secrets := [][]byte{r.Secret}
	if r.Secrets != nil {
		secrets = r.Secrets()
	}
	err := ErrSignature // of a receiver whose secrets have been removed
	for _, secret := range secrets {
		if err = senders[r.Provider].verify(h, body, secret, now); err == nil {
			return nil
		}
	}
	return err
}

// Read verifies a delivery and returns its event. The error of a failed verification wraps [ErrSignature]. The time
// bounds the age of signed timestamps.
func (r Receiver) Read(h http.Header, token string, body []byte, now time.Time) (Event, error) {
	s := senders[r.Provider]
	if err := r.verifyDelivery(h, token, body, now); err != nil {
		return Event{}, err
	}
	if err := checkLists(body); err != nil {
		return Event{}, err
	}
	changes, err := s.parse(h, body)
	if err != nil || len(changes) == 0 {
		err = checkKind(r.Provider, h, body, err)
	}
	if err == nil {
		changes, err = uniqueChanges(changes)
	}
	if err != nil {
		return Event{}, err
	}
	return Event{ID: r.deliveryID(s, h, body, now), Receiver: r.Name, Provider: r.Provider, Changes: changes}, nil
}

// checkLists refuses a body with lists of so many elements that these take a hundred times its size when they are decoded. Those of
// real deliveries, the longest of which are names of files, have more than 16 bytes on average.
func checkLists(body []byte) error {
	const always, least = 10_000, 16
	if budget.CheckElements(body, always+len(body)/least) != nil {
		return errors.New("reading a delivery: it has lists of empty elements")
	}
	return nil
}

// maxChanges bounds the changes of a delivery, in bytes. Each has all names of its repository, so that a delivery of
// many names and many references would be larger than itself by far.
const maxChanges = 16 << 20

// uniqueChanges removes duplicate changes: a batch may repeat the same change a thousand times.
func uniqueChanges(changes []Change) (out []Change, err error) {
	seen := map[string]bool{}
	size := 0
	for _, c := range changes {
		key, err := json.Marshal(c)
		if err != nil {
			panic(err) // it is plain data
		}
		if size += len(key); size > maxChanges {
			return nil, fmt.Errorf("reading the changes of a delivery: they have more than %d MiB, with the URLs of each", maxChanges>>20)
		}
		if !seen[string(key)] {
			seen[string(key)] = true
			out = append(out, c)
		}
	}
	return out, nil
}

// deliveryID returns the id of the delivery. Most headers are not covered by the signature, so a replayed delivery
// could carry a new id; that only causes a second poll of the source. The body is part of the id even if a header
// identifies the delivery: a proxy that sets the same id on all requests must not turn them into repetitions of the
// first.
func (r Receiver) deliveryID(s senderKind, h http.Header, body []byte, now time.Time) string {
	if id := r.senderDeliveryID(s, h, body); id != "" {
		return id
	}
	if s.repeats {
		// A tag that is pushed twice a day must not be taken for a repetition.
		return hashID(r.Name, "time", now.UTC().Format(time.RFC3339Nano), string(body))
	}
	return hashID(r.Name, "body", string(body))
}

// isNamedByBody reports whether only the body identifies a delivery, and its kind is one whose bodies can repeat
// for a reference that moved.
func (r Receiver) isNamedByBody(h http.Header, body []byte) bool {
	s := senders[r.Provider]
	return s.moves && r.senderDeliveryID(s, h, body) == ""
}

// senderDeliveryID returns the sender's id of a delivery, or "" if it has none.
func (r Receiver) senderDeliveryID(s senderKind, h http.Header, body []byte) string {
	if s.id != nil {
		if id := s.id(h, body); id != "" {
			return hashID(r.Name, "id", id)
		}
	}
	for _, name := range s.delivery {
		if v := h.Get(name); v != "" {
			return hashID(r.Name, name, v, string(body))
		}
	}
	return ""
}

// signedID is the id that the signature of the Standard Webhooks specification covers.
func signedID(h http.Header, _ []byte) string {
	if h.Get("Webhook-Signature") == "" {
		return ""
	}
	return h.Get("Webhook-Id")
}

// hashID returns an id of fixed form, as senders may put anything into a header.
func hashID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}
