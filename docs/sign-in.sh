# The person and the browser of these pages, played by curl: `sign_in URL` opens an authorization URL at a development
# server, signs in as alice, allows what is ticked, and prints where the browser is sent at the end.
# `field NAME` prints one member of the JSON on its standard input, the entries of a list with spaces between them.

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

# Follows redirects as long as they stay at the server; then $url is empty, and the fields of the page's first form are read.
visit() {
  url=$(curl -s -b "$jar" -c "$jar" -o "$page" -w '%{redirect_url}' "$@")
  while [[ $url == "$origin"/* ]]; do visit "$url"; done
  local form; form=$(sed '/<\/form>/q' "$page")
  mapfile -t hidden < <(sed -n 's/.*type="hidden" name="\([^"]*\)" value="\([^"]*\)".*/-d\n\1=\2/p' <<<"$form")
  mapfile -t scope < <(sed -n 's/.*name="scope" value="\([^"]*\)".* checked.*/-d\nscope=\1/p' <<<"$form")
}
