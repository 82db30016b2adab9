-- How often a message was delivered. What no script has written counts as none: to read millions of digits takes seconds, and Lua writes
-- numbers of more digits in a form that the client does not read.
local MOST_KNOWN, MOST_DIGITS = 64, 13
local function attemptsOf(delivery)
  local digits = delivery and #delivery <= MOST_KNOWN and string.match(delivery, '^%d+')
  return digits and #digits <= MOST_DIGITS and tonumber(digits) or 0
end

-- What is known of a delivery; nothing where no script has written it. After the first such value each is measured, because each can be of
-- any size, and 200 of 2 MiB took the server half a minute.
local areShort = true
local function deliveryOf(deliveries, id)
  if not areShort and redis.call('HSTRLEN', deliveries, id) > MOST_KNOWN then return false end
  local delivery = redis.call('HGET', deliveries, id)
  if not delivery or #delivery <= MOST_KNOWN then return delivery end
  areShort = false
  return false
end

-- The same of ids[from] to ids[to], which are to be few.
local function deliveriesOf(deliveries, ids, from, to)
  local known = {}
  if areShort then
    known = redis.call('HMGET', deliveries, unpack(ids, from, to))
    for n, delivery in ipairs(known) do
      if delivery and #delivery > MOST_KNOWN then known[n], areShort = false, false end
    end
  else
    for at = from, to do known[#known + 1] = deliveryOf(deliveries, ids[at]) end
  end
  return known
end
