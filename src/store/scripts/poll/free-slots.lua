-- A step of reliable-poll.lua: lowers `want` to the free slots of the queue's concurrency and rate. Sets `concurrency` and its
-- `claims`, `rate` and its `window`, and `areForgedLeft`: forged claims may hold slots.

local concurrency, rate, claims, window = setting(settings.concurrency, 1, MOST_CLAIMS), rateOf(settings.rateLimit), nil, nil
local areForgedLeft = false
do
  -- At the limit, examine a few of the claims that end last: forged claims, which another program has written, could hold a slot for ever.
  -- A claim without a message is removed; a message without a token comes back with the next poll.
  local LOOKED_AT, MOST_LOOKS = 16, 50
  local function endForged(most)
    local ended = 0
    for _, member in ipairs(namesOf(math.min(most, LOOKED_AT), function(many, from) return redis.call('ZRANGE', inFlight, -from - many, -1 - from) end)) do
      local id = string.sub(member, 2)
      if #member > LONGEST or redis.call('HEXISTS', messages, id) == 0 then
        forget({id})
        ended = ended + redis.call('ZREM', inFlight, member)
      elseif not string.find(deliveryOf(deliveries, id) or '', ' ', 1, true) then
        redis.call('ZADD', inFlight, string.format('%.0f', now), member)
        ended = ended + 1
      end
    end
    changed = changed + ended
    return ended > 0
  end

  if concurrency then
    claims = claimsNow(inFlight, now)
    for _ = 1, MOST_LOOKS do
      areForgedLeft = claims >= concurrency and endForged(claims)
      if not areForgedLeft then break end
      claims = claimsNow(inFlight, now)
      areForgedLeft = claims >= concurrency
      if isOver() or largeNames.bytes > largeNames.most then break end
    end
    want = math.min(want, math.max(0, concurrency - claims))
  end
  if rate then
    local text = redis.pcall('GETRANGE', rateClaims, 0, LONGEST_WINDOW - 1)
    if type(text) == 'table' then note('the claims of the rate limit', text.err) end
    window = windowOf(rate, type(text) == 'string' and text or '', now)
    want = math.min(want, math.max(0, rate.max - window.sum))
  end
end
