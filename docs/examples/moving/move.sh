#!/bin/sh
# Moves old-client.sh here: checks one of its requests, changes three lines, and runs all that it does.
#   BASE=… TOKEN=… ENTITY_ID=… sh docs/examples/moving/move.sh
# Ends with 0 where everything works as the old client expects it, with 1 and the answer where it does not.
set -eu
here=$(dirname "$0")
: "${BASE:?address of the gateway}" "${TOKEN:?access token}" "${ENTITY_ID:?id of the channel}"
. "$here/old-client.sh"
order="order-$$-$(date +%s)"

field() { printf '%s' "$answer" | sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" | head -n 1; }
code() { printf '%s' "$answer" | sed -n 's/.*"result": *{[^}]*"code": *"\([^"]*\)".*/\1/p' | head -n 1; }
step() { # step NAME PATTERN: the answer's result code has to be one that the old client's own patterns expect
  answer=$(printf '%s' "$answer" | tr -d '\n')
  if ! printf '%s' "$(code)" | grep -Eq "$2"; then
    printf 'FAILED %s: %s\n' "$1" "$answer" >&2
    exit 1
  fi
  printf 'ok %-22s %s\n' "$1" "$(code)"
}
SUCCESS='^(000\.000\.|000\.100\.1|000\.[36])'
REJECTED='^(800\.[17]00|800\.800\.[123])'

# 1. What of the old request is taken, ignored, refused: the page says it before anything is sent.
report=$(curl --silent --show-error "$BASE/docs/migrating" --data-urlencode "request=POST /v1/payments

entityId=$ENTITY_ID&amount=92.00&currency=EUR&paymentBrand=VISA&paymentType=PA&shopperId=4711&$CARD")
printf '%s' "$report" | grep -q shopperId || { echo "FAILED check: the page does not name shopperId" >&2; exit 1; }
printf 'ok %-22s %s\n' check "shopperId is ignored"

# 2. The three lines are changed (BASE, TOKEN, ENTITY_ID). 3. Everything else runs as it stands.
answer=$(reserve "$order"); step reserve "$SUCCESS"
reserved=$(printf '%s' "$answer" | sed -n 's/^{ *"id": *"\([0-9a-f]*\)".*/\1/p')
answer=$(capture "$reserved"); step capture "$SUCCESS"
captured=$(printf '%s' "$answer" | sed -n 's/^{ *"id": *"\([0-9a-f]*\)".*/\1/p')
answer=$(refund "$captured"); step refund "$SUCCESS"
answer=$(refused); step "a declined card" "$REJECTED"
answer=$(find_order "$order"); step "find by order number" '^000\.000\.100|^000\.100\.1'

# 4. The form: the same script and attributes from the new address.
answer=$(checkout); step checkout '^000\.200\.100'
id=$(field id)
script=$(curl --silent --show-error --output /dev/null --write-out '%{http_code}' "$BASE/v1/paymentWidgets.js?checkoutId=$id")
[ "$script" = 200 ] || { echo "FAILED form: $script" >&2; exit 1; }
printf 'ok %-22s %s\n' form "$BASE/v1/paymentWidgets.js?checkoutId=$id"
