-- How often a message was delivered. A value that no script has written counts as 0: to read millions of digits takes seconds, and Lua
-- writes numbers of more digits in a form that the client does not read.
local MOST_KNOWN, MOST_DIGITS, TOGETHER_READ = 64, 13, 8
local function attemptsOf(delivery)
  local digits = delivery and #delivery <= MOST_KNOWN and string.match(delivery, '^%d+')
  return digits and #digits <= MOST_DIGITS and tonumber(digits) or 0
end

-- The stored delivery of an id; nothing if no script has written it. After the first such value each value is measured before it is read,
-- because it can have any size: 200 of 2 MiB took the server half a minute.
local areShort = true
local function deliveryOf(deliveries, id)
  if not areShort and redis.call('HSTRLEN', deliveries, id) > MOST_KNOWN then return false end
  local delivery = redis.call('HGET', deliveries, id)
  if not delivery or #delivery <= MOST_KNOWN then return delivery end
  areShort = false
  return false
end

-- The stored deliveries of many ids, in small pages, because a page is read whole before a long value in it is seen.
local function deliveriesOf(deliveries, ids)
  local known = {}
  for from = 1, #ids, TOGETHER_READ do
    local to = math.min(from + TOGETHER_READ - 1, #ids)
    if areShort then
      local page = redis.call('HMGET', deliveries, unpack(ids, from, to))
      for n = 1, #page do
        local delivery = page[n]
        if delivery and #delivery > MOST_KNOWN then delivery, areShort = false, false end
        known[from + n - 1] = delivery
      end
    else
      for at = from, to do known[at] = deliveryOf(deliveries, ids[at]) end
    end
  end
  return known
end
