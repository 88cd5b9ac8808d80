"""Clients over Authlib (Python), against the issuer of the environment. Prints what each got as one line of JSON.

A URL that a user has to open is a line `OPEN url`; the redirect comes back as a line.
"""

import json
import os
import sys
import time

import requests
from authlib.integrations.requests_client import OAuth2Session
from authlib.oauth2.rfc7523 import PrivateKeyJWT
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet

ISSUER = os.environ["ISSUER"]
CLIENTS = json.loads(os.environ["CLIENTS"])
METADATA = requests.get(f"{ISSUER}/.well-known/openid-configuration").json()
TOKEN = METADATA["token_endpoint"]


class SignedForTheIssuer(PrivateKeyJWT):
    """Authlib signs for the token endpoint and for an hour; RFC 7523bis wants the issuer, and the server ten minutes."""

    def sign(self, auth, token_endpoint):
        self.claims = {"aud": ISSUER, "exp": int(time.time()) + 60}
        return super().sign(auth, token_endpoint)


def call(session):
    return session.get(f"{ISSUER}/api/courses").json()


def authorization_code():
    client = CLIENTS["web"]
    session = OAuth2Session(
        client["id"],
        client["secret"],
        scope="openid profile courses:read",
        redirect_uri=client["redirect_uri"],
        code_challenge_method="S256",
        token_endpoint_auth_method="client_secret_basic",
    )
    verifier = "v" * 48
    url, state = session.create_authorization_url(
        METADATA["authorization_endpoint"], code_verifier=verifier, nonce="a-nonce"
    )
    print("OPEN", url, flush=True)
    answer = sys.stdin.readline().strip()
    token = session.fetch_token(
        TOKEN, authorization_response=answer, state=state, code_verifier=verifier
    )
    keys = KeySet.import_key_set(requests.get(METADATA["jwks_uri"]).json())
    claims = jwt.decode(token["id_token"], keys, algorithms=["RS256"]).claims
    jwt.JWTClaimsRegistry(
        iss={"essential": True, "value": ISSUER},
        aud={"essential": True, "value": client["id"]},
        nonce={"essential": True, "value": "a-nonce"},
        exp={"essential": True},
    ).validate(claims)
    userinfo = session.get(METADATA["userinfo_endpoint"]).json()
    before = token["refresh_token"]
    refreshed = session.refresh_token(TOKEN)
    active = session.introspect_token(
        METADATA["introspection_endpoint"], refreshed["access_token"]
    ).json()
    session.revoke_token(METADATA["revocation_endpoint"], refreshed["refresh_token"])
    ended = session.introspect_token(
        METADATA["introspection_endpoint"], refreshed["access_token"]
    ).json()
    return {
        "same_user": claims["sub"] == userinfo["sub"],
        "rotated": refreshed["refresh_token"] != before,
        "active": active["active"],
        "ended": not ended["active"],
    }


def with_secret(method):
    client = CLIENTS["service"]
    session = OAuth2Session(
        client["id"], client["secret"], scope="courses:read", token_endpoint_auth_method=method
    )
    token = session.fetch_token(TOKEN, grant_type="client_credentials")
    return {"caller": call(session)["caller"], "refresh": "refresh_token" in token}


def with_key(client, authentication):
    session = OAuth2Session(
        client["id"],
        ECKey.import_key(client["key"]),
        scope="courses:read",
        token_endpoint_auth_method="private_key_jwt",
    )
    session.register_client_auth_method(authentication)
    # Twice: each assertion is another one.
    session.fetch_token(TOKEN, grant_type="client_credentials")
    session.fetch_token(TOKEN, grant_type="client_credentials")
    return {"caller": call(session)["caller"]}


print(
    json.dumps(
        {
            "authorization_code": authorization_code(),
            "client_secret_basic": with_secret("client_secret_basic"),
            "client_secret_post": with_secret("client_secret_post"),
            "private_key_jwt": with_key(CLIENTS["signing"], SignedForTheIssuer(alg="ES256")),
        }
    )
)
