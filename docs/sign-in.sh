# Replaces the user and the browser in the commands of these pages. `sign_in URL` opens an authorization URL of a
# development server with curl, signs in as alice, allows every checked scope, and prints the final redirect.
# `field NAME` prints one member of the JSON on standard input, the entries of a list separated by spaces.

field() { node -p "[JSON.parse(require('fs').readFileSync(0))['$1']].flat().join(' ')"; }

sign_in() {
  local origin base jar page hidden scope=() url
  origin=$(cut -d/ -f1-3 <<<"$1") base=${1%%/oauth/authorize*}
  jar=$(mktemp) page=$(mktemp)
  visit "$1"
  [ -n "$url" ] || visit "$base/login" "${hidden[@]}" -d username=alice -d password=alice-in-dev
  [ -n "$url" ] || visit "$base/consent" "${hidden[@]}" "${scope[@]}" -d decision=approve
  echo "$url"
}

# Follows redirects within the server. On a page $url is empty, and the fields of its first form are read.
visit() {
  url=$(curl -s -b "$jar" -c "$jar" -o "$page" -w '%{redirect_url}' "$@")
  while [[ $url == "$origin"/* ]]; do visit "$url"; done
  local form; form=$(sed '/<\/form>/q' "$page")
  mapfile -t hidden < <(sed -n 's/.*type="hidden" name="\([^"]*\)" value="\([^"]*\)".*/-d\n\1=\2/p' <<<"$form")
  mapfile -t scope < <(sed -n 's/.*name="scope" value="\([^"]*\)".* checked.*/-d\nscope=\1/p' <<<"$form")
}
