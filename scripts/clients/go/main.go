// Clients over golang.org/x/oauth2 and coreos/go-oidc, against the issuer of the environment. Prints what each got as one
// line of JSON. A URL that a user has to open is a line "OPEN url"; the redirect comes back as a line.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

type client struct {
	ID          string `json:"id"`
	Secret      string `json:"secret"`
	RedirectURI string `json:"redirect_uri"`
}

type results map[string]any

var (
	issuer  = os.Getenv("ISSUER")
	clients map[string]client
	answers = bufio.NewReader(os.Stdin)
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

// call returns who the API says is calling.
func call(http *http.Client) string {
	response := must(http.Get(issuer + "/api/courses"))
	defer response.Body.Close()
	var body struct {
		Caller string `json:"caller"`
	}
	if err := json.Unmarshal(must(io.ReadAll(response.Body)), &body); err != nil {
		log.Fatal(err)
	}
	return body.Caller
}

func authorizationCode(ctx context.Context, provider *oidc.Provider) results {
	web := clients["web"]
	config := oauth2.Config{
		ClientID:     web.ID,
		ClientSecret: web.Secret,
		RedirectURL:  web.RedirectURI,
		Endpoint:     provider.Endpoint(),
		Scopes:       []string{oidc.ScopeOpenID, "profile", "courses:read"},
	}
	verifier, state, nonce := oauth2.GenerateVerifier(), oauth2.GenerateVerifier(), oauth2.GenerateVerifier()
	fmt.Println("OPEN", config.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier), oidc.Nonce(nonce)))
	callback := must(url.Parse(strings.TrimSpace(must(answers.ReadString('\n')))))
	if callback.Query().Get("state") != state {
		log.Fatal("another state")
	}
	token := must(config.Exchange(ctx, callback.Query().Get("code"), oauth2.VerifierOption(verifier)))
	raw, _ := token.Extra("id_token").(string)
	idToken := must(provider.Verifier(&oidc.Config{ClientID: web.ID}).Verify(ctx, raw))
	if idToken.Nonce != nonce {
		log.Fatal("another nonce")
	}
	if err := idToken.VerifyAccessToken(token.AccessToken); err != nil {
		log.Fatal(err)
	}
	userInfo := must(provider.UserInfo(ctx, oauth2.StaticTokenSource(token)))
	// Expired for the library, so that it refreshes.
	expired := *token
	expired.Expiry = time.Now().Add(-time.Hour)
	refreshed := must(config.TokenSource(ctx, &expired).Token())
	return results{
		"same_user": userInfo.Subject == idToken.Subject,
		"caller":    call(config.Client(ctx, refreshed)),
		"rotated":   refreshed.RefreshToken != token.RefreshToken,
	}
}

func clientCredentials(ctx context.Context, provider *oidc.Provider, style oauth2.AuthStyle) results {
	service := clients["service"]
	config := clientcredentials.Config{
		ClientID:     service.ID,
		ClientSecret: service.Secret,
		TokenURL:     provider.Endpoint().TokenURL,
		Scopes:       []string{"courses:read"},
		AuthStyle:    style,
	}
	token := must(config.Token(ctx))
	return results{"caller": call(config.Client(ctx)), "refresh": token.RefreshToken != ""}
}

// device shows a URL with the code in it, and polls until the user has decided.
func device(ctx context.Context, provider *oidc.Provider) results {
	tv := clients["device"]
	config := oauth2.Config{ClientID: tv.ID, Endpoint: provider.Endpoint(), Scopes: []string{"courses:read"}}
	config.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	verifier := oauth2.GenerateVerifier()
	shown := must(config.DeviceAuth(ctx, oauth2.S256ChallengeOption(verifier)))
	fmt.Println("DEVICE", shown.UserCode)
	token := must(config.DeviceAccessToken(ctx, shown, oauth2.VerifierOption(verifier)))
	return results{
		"caller":    call(config.Client(ctx, token)),
		"refresh":   token.RefreshToken != "",
		"announced": provider.Endpoint().DeviceAuthURL != "" && shown.VerificationURIComplete != "",
	}
}

func main() {
	log.SetFlags(0)
	if err := json.Unmarshal([]byte(os.Getenv("CLIENTS")), &clients); err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	provider := must(oidc.NewProvider(ctx, issuer))
	fmt.Println(string(must(json.Marshal(results{
		"authorization_code": authorizationCode(ctx, provider),
		"device":             device(ctx, provider),
		"auto_detect":        clientCredentials(ctx, provider, oauth2.AuthStyleAutoDetect),
		"in_header":          clientCredentials(ctx, provider, oauth2.AuthStyleInHeader),
		"in_params":          clientCredentials(ctx, provider, oauth2.AuthStyleInParams),
	}))))
}
