#!/usr/bin/env bash
# Seven steps against a development server, `npm start`. The README of the repository has the same commands.
set -euo pipefail

issuer=${ISSUER:-http://localhost:9400}
field() { node -p "JSON.parse(require('fs').readFileSync(0))['$1']"; }
call() { curl -s -w '\n' "$@"; }

# 1. Discover
metadata=$(curl -s $issuer/.well-known/oauth-authorization-server)
registration_endpoint=$(field registration_endpoint <<<"$metadata")
authorization_endpoint=$(field authorization_endpoint <<<"$metadata")
token_endpoint=$(field token_endpoint <<<"$metadata")

# 2. Register: open to anyone whose redirect URIs are on this computer
redirect_uri=http://127.0.0.1:7777/callback
client_id=$(curl -s $registration_endpoint -H 'content-type: application/json' \
  -d '{"client_name":"My first client","redirect_uris":["'$redirect_uri'"],"token_endpoint_auth_method":"none"}' | field client_id)

# 3. Authorize, with PKCE: open this URL in a browser and sign in …
base64url() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }
code_verifier=$(openssl rand 32 | base64url)
code_challenge=$(printf %s "$code_verifier" | openssl dgst -sha256 -binary | base64url)
url="$authorization_endpoint?response_type=code&client_id=$client_id&redirect_uri=$redirect_uri&scope=openid+profile+courses:read&state=af0ifjsldkj&code_challenge=$code_challenge&code_challenge_method=S256"
echo "$url"

#    … (nothing listens at the redirect URI, so copy the code from the address bar), or let curl sign in and consent
cookies=$(mktemp)
browser() { curl -s -L -b $cookies -c $cookies "$@"; }
hidden() { sed -n "s/.*name=\"$1\" value=\"\([^\"]*\)\".*/\1/p" <<<"$page" | head -1; }
page=$(browser "$url")
page=$(browser $issuer/login -d interaction=$(hidden interaction) -d csrf=$(hidden csrf) -d username=alice -d password=alice-in-dev)
callback=$(curl -s -b $cookies -o /dev/null -w '%{redirect_url}' $issuer/consent -d interaction=$(hidden interaction) -d csrf=$(hidden csrf) \
  -d scope=openid -d scope=profile -d scope=courses:read -d decision=approve)
echo "$callback"
code=$(sed 's/.*[?&]code=\([^&]*\).*/\1/' <<<"$callback")

# 4. Exchange the code
tokens=$(curl -s $token_endpoint -d grant_type=authorization_code -d code=$code -d redirect_uri=$redirect_uri -d client_id=$client_id -d code_verifier=$code_verifier)
echo "$tokens"

# 5. Call the API: with the token, without one, and with one that lacks the scope
call $issuer/api/courses -H "authorization: Bearer $(field access_token <<<"$tokens")"
call $issuer/api/courses
call -i $issuer/api/orders -H "authorization: Bearer $(field access_token <<<"$tokens")"

# 6. Refresh: a new access token and a new refresh token, without the user
tokens=$(curl -s $token_endpoint -d grant_type=refresh_token -d refresh_token=$(field refresh_token <<<"$tokens") -d client_id=$client_id)
call $issuer/api/oauth/userinfo -H "authorization: Bearer $(field access_token <<<"$tokens")"

# 7. Revoke: the refresh token, and with it every access token of this grant
call $issuer/api/oauth/revoke -d token=$(field refresh_token <<<"$tokens") -d client_id=$client_id
call -i $issuer/api/courses -H "authorization: Bearer $(field access_token <<<"$tokens")"
