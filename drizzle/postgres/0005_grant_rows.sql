ALTER TABLE "accounts" DROP CONSTRAINT "accounts_pkey";--> statement-breakpoint
ALTER TABLE "accounts" ADD COLUMN "seq" bigserial PRIMARY KEY NOT NULL;--> statement-breakpoint
ALTER TABLE "accounts" ADD CONSTRAINT "accounts_id" UNIQUE("id");--> statement-breakpoint
ALTER TABLE "clients" DROP CONSTRAINT "clients_pkey";--> statement-breakpoint
ALTER TABLE "clients" ADD COLUMN "seq" bigserial PRIMARY KEY NOT NULL;--> statement-breakpoint
ALTER TABLE "clients" ADD CONSTRAINT "clients_id" UNIQUE("id");--> statement-breakpoint
CREATE TABLE "__new_grants" (
	"id" "bytea" NOT NULL,
	"secret" "bytea" NOT NULL,
	"client_seq" bigint NOT NULL,
	"account_seq" bigint NOT NULL,
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
	"approved_at" bigint,
	"seq" bigint NOT NULL,
	"rotated_at" bigint,
	"refresh_expires_at" bigint,
	"absolute_expires_at" bigint NOT NULL,
	"expires_at" bigint,
	"revoked_at" bigint,
	"revoked_by" text
);
--> statement-breakpoint
INSERT INTO "__new_grants"("id", "secret", "client_seq", "account_seq", "scope", "resource", "redirect_uri", "redirect_uri_sent", "code_challenge", "nonce", "authenticated_at", "methods", "auth_time_owed", "claims", "approved_at", "seq", "rotated_at", "refresh_expires_at", "absolute_expires_at", "expires_at", "revoked_at", "revoked_by") SELECT g."id", "secret", c."seq", a."seq", "scope", "resource", "redirect_uri", "redirect_uri_sent", CASE WHEN g."seq" = 0 THEN "code_challenge" ELSE substr("code_challenge", 1, 8) END, CASE WHEN g."seq" = 0 THEN "nonce" END, "authenticated_at", "methods", "auth_time_owed", g."claims", CASE WHEN substr(g."id", 1, 4) <> decode(lpad(to_hex("approved_at"), 8, '0'), 'hex') THEN "approved_at" END, g."seq", "rotated_at", "refresh_expires_at", "absolute_expires_at", nullif("expires_at", "refresh_expires_at"), "revoked_at", "revoked_by" FROM "grants" g JOIN "clients" c ON c."id" = g."client_id" JOIN "accounts" a ON a."id" = g."account_id" ORDER BY g."id";--> statement-breakpoint
DROP TABLE "grants";--> statement-breakpoint
ALTER TABLE "__new_grants" RENAME TO "grants";--> statement-breakpoint
ALTER TABLE "grants" ADD PRIMARY KEY ("id");--> statement-breakpoint
CREATE INDEX "grants_account_seq" ON "grants" USING btree ("account_seq");