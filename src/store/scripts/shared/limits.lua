-- The limits of a queue over all its consumers: how many messages are claimed at once, and how many claims there are in any stretch of time.
local MOST_CLAIMS, LONGEST_PER_MS = 1000000, 86400000

-- Counted where the claims are, so that the slot of a consumer that died comes back when the visibility of its message ends.
local function claimsNow(inFlight, now)
  return redis.call('ZCOUNT', inFlight, '(' .. string.format('%.0f', now), '+inf')
end

-- Whether the end of a claim lets another one begin.
local function isAtLimit(settings, inFlight, now)
  local most = setting(settings.concurrency, 1, MOST_CLAIMS)
  return most and claimsNow(inFlight, now) >= most
end

-- For those who wait at the limit: they look at once. Without the right to publish they look with each sweep.
local function publishSlot(messages, now)
  redis.pcall('PUBLISH', string.gsub(messages, ':messages:', ':channel:', 1), string.format('%.0f', now))
end
