CREATE TABLE "records" (
	"kind" text NOT NULL,
	"id" "bytea" NOT NULL,
	"user_id" text,
	"client_id" text,
	"made_at" bigint,
	"expires_at" bigint,
	"body" text NOT NULL,
	CONSTRAINT "records_kind_id_pk" PRIMARY KEY("kind","id")
);
--> statement-breakpoint
INSERT INTO "records" SELECT 'passkey', convert_to(id, 'UTF8'), account_id, NULL, created_at, NULL, json_build_object('id', id, 'userId', account_id, 'publicKey', translate(encode(public_key, 'base64'), E'+/=\n', '-_'), 'counter', counter, 'transports', coalesce(to_json(string_to_array(nullif(transports, ''), ' ')), '[]'::json), 'name', name, 'backedUp', backed_up, 'createdAt', created_at, 'usedAt', used_at)::text FROM "passkeys";
--> statement-breakpoint
INSERT INTO "records" SELECT 'secondFactor', convert_to(account_id, 'UTF8'), account_id, NULL, created_at, NULL, json_strip_nulls(json_build_object('userId', account_id, 'sealedSecret', sealed_secret, 'confirmedAt', confirmed_at, 'usedStep', used_step, 'recoveryHashes', coalesce(to_json(string_to_array(nullif(recovery_hashes, ''), ' ')), '[]'::json), 'createdAt', created_at))::text FROM "second_factors";
--> statement-breakpoint
INSERT INTO "records" SELECT 'link ' || purpose, convert_to(id, 'UTF8'), account_id, NULL, created_at, expires_at, json_strip_nulls(json_build_object('id', id, 'purpose', purpose, 'userId', account_id, 'email', email, 'createdAt', created_at, 'expiresAt', expires_at))::text FROM "one_time_links";
--> statement-breakpoint
INSERT INTO "records" SELECT 'interaction', convert_to(id, 'UTF8'), NULL, NULL, created_at, expires_at, '{"request":' || request || ',' || substr(json_strip_nulls(json_build_object('id', id, 'browserHash', browser_hash, 'pendingSecondFactor', CASE WHEN half_sign_in IS NOT NULL THEN json_build_object('userId', coalesce(half_sign_in::json -> 'userId', half_sign_in::json -> 'accountId'), 'password', half_sign_in::json -> 'password', 'at', half_sign_in::json -> 'at') END, 'challenge', challenge, 'authenticatedSessionId', authenticated_session_id, 'userChosen', account_chosen, 'createdAt', created_at, 'expiresAt', expires_at))::text, 2) FROM "interactions";
--> statement-breakpoint
INSERT INTO "records" SELECT 'consent', convert_to(account_id || ' ' || client_id, 'UTF8'), account_id, client_id, granted_at, NULL, '{"userId":' || to_json(account_id)::text || ',"clientId":' || to_json(client_id)::text || ',"allowed":' || allowed || ',"grantedAt":' || granted_at || '}' FROM "consents";
--> statement-breakpoint
INSERT INTO "records" SELECT 'throttle', key, NULL, NULL, NULL, expires_at, json_build_object('key', convert_from(key, 'UTF8'), 'failures', failures, 'expiresAt', expires_at)::text FROM "throttles" WHERE position('\x00'::bytea in key) = 0;
--> statement-breakpoint
DROP TABLE "passkeys";
--> statement-breakpoint
DROP TABLE "second_factors";
--> statement-breakpoint
DROP TABLE "one_time_links";
--> statement-breakpoint
DROP TABLE "interactions";
--> statement-breakpoint
DROP TABLE "consents";
--> statement-breakpoint
DROP TABLE "throttles";
--> statement-breakpoint
CREATE INDEX "records_user_id" ON "records" USING btree ("user_id","kind") WHERE user_id is not null;
--> statement-breakpoint
CREATE INDEX "records_client_id" ON "records" USING btree ("client_id") WHERE client_id is not null;
--> statement-breakpoint
CREATE INDEX "records_expires_at" ON "records" USING btree ("expires_at") WHERE expires_at is not null;
--> statement-breakpoint
ALTER TABLE "accounts" RENAME TO "users";
--> statement-breakpoint
ALTER INDEX "accounts_pkey" RENAME TO "users_pkey";
--> statement-breakpoint
ALTER TABLE "users" RENAME CONSTRAINT "accounts_id" TO "users_id";
--> statement-breakpoint
ALTER TABLE "users" RENAME CONSTRAINT "accounts_username" TO "users_username";
--> statement-breakpoint
ALTER TABLE "users" RENAME CONSTRAINT "accounts_email" TO "users_email";
--> statement-breakpoint
ALTER INDEX "accounts_seeded" RENAME TO "users_seeded";
--> statement-breakpoint
ALTER SEQUENCE "accounts_seq_seq" RENAME TO "users_seq_seq";
--> statement-breakpoint
ALTER TABLE "sessions" RENAME COLUMN "account_id" TO "user_id";
--> statement-breakpoint
ALTER INDEX "sessions_account_id" RENAME TO "sessions_user_id";
--> statement-breakpoint
ALTER TABLE "grants" RENAME COLUMN "account_seq" TO "user_seq";
--> statement-breakpoint
ALTER INDEX "grants_account_seq" RENAME TO "grants_user_seq";
--> statement-breakpoint
ALTER TABLE "audit_events" RENAME COLUMN "account_id" TO "user_id";
--> statement-breakpoint
ALTER INDEX "audit_events_account_id" RENAME TO "audit_events_user_id";
--> statement-breakpoint
ALTER TABLE "refusals" RENAME TO "rejections";
--> statement-breakpoint
ALTER INDEX "refusals_pkey" RENAME TO "rejections_pkey";
--> statement-breakpoint
ALTER TABLE "rejections" RENAME CONSTRAINT "refusals_id" TO "rejections_id";
--> statement-breakpoint
ALTER SEQUENCE "refusals_seq_seq" RENAME TO "rejections_seq_seq";
