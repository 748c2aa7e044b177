// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"github.com/prerig/prerig/pipeline/internal/process/trust"
	"golang.org/x/crypto/ssh"
)

// Keys of a secret, as Flux names them.
const (
	KeyUsername    = "username"
	KeyPassword    = "password"
	KeyBearerToken = "bearerToken"
	KeyIdentity    = "identity"
	KeyKnownHosts  = "known_hosts"
	KeyCA          = "ca.crt"
)

// connectTimeout bounds the time until a server answers at all.
const connectTimeout = 30 * time.Second

// httpAuth returns the method for https, nil for none.
func httpAuth(secret map[string][]byte) (transport.AuthMethod, error) {
	username, password, token := string(secret[KeyUsername]), string(secret[KeyPassword]), string(secret[KeyBearerToken])
	switch {
	case token != "" && password != "":
		return nil, fmt.Errorf("secret has both %s and %s", KeyBearerToken, KeyPassword)
	case token != "":
		return &githttp.TokenAuth{Token: token}, nil
	case password != "":
		if username == "" {
			// Hosts that take a token as the password accept any user name, and refuse an empty one.
			username = "git"
		}
		return &githttp.BasicAuth{Username: username, Password: password}, nil
	case len(secret[KeyIdentity]) > 0:
		return nil, fmt.Errorf("secret has %s, which is for ssh; https takes %s or %s", KeyIdentity, KeyPassword, KeyBearerToken)
	}
	return nil, nil
}

// httpTransport trusts the system's authorities and those of the secret.
func httpTransport(ca []byte) (*http.Transport, error) {
	base, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the process has replaced its HTTP transport")
	}
	t := base.Clone()
	t.ResponseHeaderTimeout = 2 * time.Minute
	t.MaxIdleConnsPerHost = 8
	if len(ca) > 0 {
		trusted, ok := trust.Authorities(ca)
		if !ok {
			return nil, fmt.Errorf("secret's %s holds no PEM certificate", KeyCA)
		}
		t.TLSClientConfig = trusted
	}
	return t, nil
}

// sshConfig needs a key and known_hosts: a host that is not known is never trusted.
func sshConfig(secret map[string][]byte, user, hostPort string) (*ssh.ClientConfig, error) {
	if len(secret[KeyIdentity]) == 0 {
		return nil, fmt.Errorf("ssh needs a secret with %s, a private key", KeyIdentity)
	}
	if len(secret[KeyKnownHosts]) == 0 {
		return nil, fmt.Errorf("ssh needs a secret with %s, the host's keys", KeyKnownHosts)
	}
	signer, err := ssh.ParsePrivateKey(secret[KeyIdentity])
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		signer, err = ssh.ParsePrivateKeyWithPassphrase(secret[KeyIdentity], secret[KeyPassword])
	}
	if err != nil {
		// The cause could quote the key.
		return nil, fmt.Errorf("secret's %s is not a private key that its %s opens", KeyIdentity, KeyPassword)
	}
	check, algos, err := knownHosts(secret[KeyKnownHosts], hostPort)
	if err != nil {
		return nil, err
	}
	return &ssh.ClientConfig{User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: check, HostKeyAlgorithms: algos}, nil
}

// knownHosts reads the lines through a file, since the library accepts no other form. They are public.
func knownHosts(lines []byte, hostPort string) (ssh.HostKeyCallback, []string, error) {
	file, name, err := hostsFile()
	if err != nil {
		return nil, nil, fmt.Errorf("reading known_hosts: %w", err)
	}
	defer file.Close()
	defer os.Remove(name) // which has no effect on one in memory
	if _, err := file.Write(lines); err != nil {
		return nil, nil, fmt.Errorf("reading known_hosts: %w", err)
	}
	db, err := gitssh.NewKnownHostsDb(name)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the secret's %s: %w", KeyKnownHosts, err)
	}
	algos := db.HostKeyAlgorithms(hostPort)
	if len(algos) == 0 {
		return nil, nil, fmt.Errorf("secret's %s has no key of %s", KeyKnownHosts, hostPort)
	}
	return db.HostKeyCallback(), algos, nil
}

func temporaryHosts() (file *os.File, name string, err error) {
	if file, err = os.CreateTemp("", "prerig-known-hosts-"); err != nil {
		return nil, "", err
	}
	return file, file.Name(), nil
}
