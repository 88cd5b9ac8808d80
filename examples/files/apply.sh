#!/usr/bin/env bash
# Applies the files of this folder to the server of `npm start`, http://localhost:9400, and shows that a second time
# changes nothing. Run it from the top of the project.
set -euo pipefail

export NIGHTLY_IMPORT_SECRET=${NIGHTLY_IMPORT_SECRET:-$(openssl rand -hex 32)}
npx lychgate apply -f examples/files
npx lychgate apply -f examples/files --dry-run
