# An order; once more, and it is a replay, byte for byte.
curl -i $SHOP/orders -H 'Authorization: Bearer ann' -H 'Idempotency-Key: click-1' -d '{"seat":"S01","card":"good"}'
# Another body under that key: 422.
curl -i $SHOP/orders -H 'Authorization: Bearer ann' -H 'Idempotency-Key: click-1' -d '{"seat":"S02","card":"good"}'
# That key from another buyer: a key that nobody has seen.
curl -i $SHOP/orders -H 'Authorization: Bearer bob' -H 'Idempotency-Key: click-1' -d '{"seat":"S02","card":"good"}'
# A seat that is sold: 409, but not of the kind that is asked again.
curl -i $SHOP/orders -H 'Authorization: Bearer cid' -H 'Idempotency-Key: click-1' -d '{"seat":"S01","card":"good"}'
# A card that is declined: 402, stored like any answer; the seat is free again.
curl -i $SHOP/orders -H 'Authorization: Bearer dot' -H 'Idempotency-Key: click-1' -d '{"seat":"S03","card":"declined"}'
# No key: 400.
curl -i $SHOP/orders -H 'Authorization: Bearer eve' -d '{"seat":"S04","card":"good"}'
# A webhook, as often as you like: one credit.
curl -i $SHOP/webhooks -d '{"id":"evt_try","buyer":"ann"}'
