CREATE TABLE "accounts" (
	"id" text PRIMARY KEY NOT NULL,
	"username" text NOT NULL,
	"email" text,
	"password_hash" text NOT NULL,
	"claims" text NOT NULL,
	"seeded" boolean NOT NULL,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL,
	CONSTRAINT "accounts_username" UNIQUE("username"),
	CONSTRAINT "accounts_email" UNIQUE("email")
);
--> statement-breakpoint
CREATE TABLE "clients" (
	"id" text PRIMARY KEY NOT NULL,
	"origin" text NOT NULL,
	"issued_at" bigint NOT NULL,
	"used_at" bigint NOT NULL,
	"metadata" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "consents" (
	"account_id" text NOT NULL,
	"client_id" text NOT NULL,
	"allowed" text NOT NULL,
	"granted_at" bigint NOT NULL,
	CONSTRAINT "consents_account_id_client_id_pk" PRIMARY KEY("account_id","client_id")
);
--> statement-breakpoint
CREATE TABLE "grants" (
	"id" "bytea" PRIMARY KEY NOT NULL,
	"secret" "bytea" NOT NULL,
	"client_id" text NOT NULL,
	"account_id" text NOT NULL,
	"scope" text NOT NULL,
	"resource" text NOT NULL,
	"redirect_uri" text NOT NULL,
	"redirect_uri_sent" boolean NOT NULL,
	"code_challenge" "bytea",
	"nonce" "bytea",
	"authenticated_at" bigint NOT NULL,
	"methods" text NOT NULL,
	"auth_time_owed" boolean NOT NULL,
	"claims" text,
	"approved_at" bigint NOT NULL,
	"code_expires_at" bigint NOT NULL,
	"seq" bigint NOT NULL,
	"rotated_at" bigint,
	"refresh_expires_at" bigint,
	"absolute_expires_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL,
	"revoked_at" bigint
);
--> statement-breakpoint
CREATE TABLE "interactions" (
	"id" text PRIMARY KEY NOT NULL,
	"browser_hash" text NOT NULL,
	"request" text NOT NULL,
	"authenticated_session_id" text,
	"account_chosen" boolean NOT NULL,
	"created_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "keys" (
	"id" text PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"algorithm" text NOT NULL,
	"public_jwk" text,
	"sealed_private" text NOT NULL,
	"created_at" bigint NOT NULL,
	"active_at" bigint NOT NULL,
	"retired_at" bigint
);
--> statement-breakpoint
CREATE TABLE "revoked_access_tokens" (
	"grant_id" "bytea" NOT NULL,
	"token_id" text NOT NULL,
	"expires_at" bigint NOT NULL,
	CONSTRAINT "revoked_access_tokens_grant_id_token_id_pk" PRIMARY KEY("grant_id","token_id")
);
--> statement-breakpoint
CREATE TABLE "sessions" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" text NOT NULL,
	"authenticated_at" bigint NOT NULL,
	"methods" text NOT NULL,
	"created_at" bigint NOT NULL,
	"idle_expires_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "throttles" (
	"key" "bytea" PRIMARY KEY NOT NULL,
	"failures" bigint NOT NULL,
	"expires_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE INDEX "clients_never_used" ON "clients" USING btree ("issued_at") WHERE origin = 'registered' and used_at = issued_at;--> statement-breakpoint
CREATE INDEX "consents_client_id" ON "consents" USING btree ("client_id");--> statement-breakpoint
CREATE INDEX "interactions_expires_at" ON "interactions" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "revoked_access_tokens_expires_at" ON "revoked_access_tokens" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "sessions_account_id" ON "sessions" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "sessions_idle_expires_at" ON "sessions" USING btree ("idle_expires_at");--> statement-breakpoint
CREATE INDEX "throttles_expires_at" ON "throttles" USING btree ("expires_at");