-- A part of reliable-poll.lua: ends a few claims that end later than any client can set, so that they come back with the next poll. Another program has written
-- them, or the clock was far ahead; they would hold their message, and a slot, for ever. Returns whether there were any.
local function endFar()
  local far = namesOf(16, function(many)
    return redis.call('ZRANGEBYSCORE', inFlight, string.format('(%.0f', now + LONGEST_VISIBILITY + 60000), '+inf', 'LIMIT', 0, many)
  end)
  for _, member in ipairs(far) do redis.call('ZADD', inFlight, string.format('%.0f', now), member) end
  changed = changed + #far
  return #far > 0
end
