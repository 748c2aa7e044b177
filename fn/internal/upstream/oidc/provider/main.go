// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command provider is an OpenID Connect provider on loopback with three users, each with their name as the
// password: alice of the group platform, bob of the group shop-devs, and mallory of none. It accepts the redirect
// address of its client prerig, whose secret is "client secret", writes its issuer to standard output, and ends
// with its standard input.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

var groups = map[string][]string{"alice": {"platform", "staff"}, "bob": {"shop-devs"}}

// users is the provider's store of users.
type users map[string]*storage.User

func (u users) GetUserByID(id string) *storage.User         { return u[id] }
func (u users) GetUserByUsername(name string) *storage.User { return u["id-of-"+name] }
func (users) ExampleClientID() string                       { return "service" }

// withGroups is the provider's storage, with the claim groups: for alice in the ID token too, for the others only where user info is
// asked for, as the most providers have it.
type withGroups struct {
	*storage.Storage
	users users
}

func (s withGroups) SetUserinfoFromRequest(ctx context.Context, info *oidc.UserInfo, token op.IDTokenRequest, scopes []string) error {
	if s.users[token.GetSubject()].Username == "alice" {
		info.AppendClaims("groups", groups["alice"])
	}
	return s.Storage.SetUserinfoFromRequest(ctx, info, token, scopes)
}

func (s withGroups) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, tokenID, subject, origin string) error {
	if err := s.Storage.SetUserinfoFromToken(ctx, info, tokenID, subject, origin); err != nil {
		return err
	}
	info.AppendClaims("groups", groups[s.users[subject].Username])
	return nil
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(redirect string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	all := users{}
	for _, name := range []string{"alice", "bob", "mallory"} {
		id := "id-of-" + name
		all[id] = &storage.User{ID: id, Username: name, Password: name, Email: name + "@example.com", EmailVerified: true}
	}
	storage.RegisterClients(storage.WebClient("prerig", "client secret", redirect))
	issuer := "http://" + l.Addr().String() + "/"
	handler := exampleop.SetupServer(issuer, withGroups{storage.NewStorage(all), all}, slog.New(slog.NewTextHandler(os.Stderr, nil)), false)
	fmt.Println(issuer)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return (&http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}).Serve(l)
}
