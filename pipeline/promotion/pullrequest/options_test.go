// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest_test

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

func TestReadCredentials(t *testing.T) {
	for _, c := range []struct {
		keys    map[string]string
		want    string
		problem string
	}{
		{map[string]string{"token": "s3cret\n"}, "token s3cret", ""},
		{map[string]string{"bearerToken": "s3cret"}, "token s3cret", ""},
		{map[string]string{"username": "ann", "password": "s3cret"}, "basic ann:s3cret", ""},
		{map[string]string{"username": "ann", "password": "of git", "token": "s3cret"}, "token s3cret", ""},
		{map[string]string{"githubAppID": "12", "githubAppPrivateKey": "s3cret", "githubAppInstallationID": "34"}, "app 12", ""},
		{map[string]string{"token": "s3cret", "bearerToken": "s3cret"}, "", "both token and bearerToken"},
		{map[string]string{"token": "s3cret", "githubAppID": "12", "githubAppPrivateKey": "s3cret"}, "", "both a token and"},
		{map[string]string{"githubAppPrivateKey": "s3cret"}, "", "needs both githubAppID and"},
		{map[string]string{"githubAppID": "12"}, "", "needs both githubAppID and"},
		{map[string]string{"githubAppID": "12", "githubAppPrivateKey": "s3cret", "githubAppInstallationID": "s3cret"}, "", "must be a number"},
		{map[string]string{"username": "s3cret", "identity": "s3cret"}, "", "none of token, password and githubAppPrivateKey"},
	} {
		keys := map[string][]byte{}
		for key, value := range c.keys {
			keys[key] = []byte(value)
		}
		got, err := pullrequest.ReadCredentials(keys)
		if c.problem != "" {
			if err == nil || !strings.Contains(err.Error(), c.problem) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%v: got %v", c.keys, err)
			}
			continue
		}
		said := "token " + got.Token
		switch {
		case got.App != nil:
			said = "app " + got.App.ID
		case got.Password != "":
			said = "basic " + got.Username + ":" + got.Password
		}
		if err != nil || said != c.want {
			t.Errorf("%v: got %s, %v", c.keys, said, err)
		}
	}
}

func TestOpenRefusesWhatItCannotKnow(t *testing.T) {
	for problem, o := range map[string]pullrequest.Options{
		"does not tell what kind of host git.example.com is": {Repository: "https://git.example.com/org/app"},
		"not one of a repository of AzureDevOps":             {Repository: "https://dev.azure.com/org/app", Provider: giturl.AzureDevOps},
		"not one of a repository of CVS":                     {Repository: "https://git.example.com/org/app", Provider: "CVS"},
		"names no host":                                      {Repository: "/srv/s3cret", Provider: giturl.GitHub},
		"those of a GitHub App":                              {Repository: "https://gitlab.com/org/app", Credentials: pullrequest.Credentials{App: &pullrequest.App{ID: "1"}}},
	} {
		if _, err := pullrequest.Open(o); err == nil || !strings.Contains(err.Error(), problem) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %v", problem, err)
		}
	}
}
