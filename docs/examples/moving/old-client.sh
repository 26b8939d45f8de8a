# A client of another gateway, as it was: shell functions around curl. Three variables say where and who: BASE, TOKEN and
# ENTITY_ID. Nothing else of it is changed.
CARD="card.number=4200000000000000&card.holder=Jane+Jones&card.expiryMonth=05&card.expiryYear=2034&card.cvv=123"

send() {
  path=$1
  shift
  curl --silent --show-error "$BASE$path" --header "Authorization: Bearer $TOKEN" --data "entityId=$ENTITY_ID&$*"
}

reserve() { send /v1/payments "amount=92.00&currency=EUR&paymentBrand=VISA&paymentType=PA&merchantTransactionId=$1&shopperId=4711&$CARD"; }
capture() { send "/v1/payments/$1" "amount=92.00&currency=EUR&paymentType=CP"; }
refund() { send "/v1/payments/$1" "amount=10.00&currency=EUR&paymentType=RF"; }
refused() { send /v1/payments "amount=92.00&currency=EUR&paymentBrand=VISA&paymentType=DB&${CARD%4200000000000000*}4000015500000005${CARD#*4200000000000000}"; }
find_order() {
  curl --silent --show-error --get "$BASE/v1/query" --header "Authorization: Bearer $TOKEN" \
    --data "entityId=$ENTITY_ID&merchantTransactionId=$1"
}
checkout() { send /v1/checkouts "amount=92.00&currency=EUR&paymentType=DB"; }
