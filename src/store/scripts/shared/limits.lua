-- The limits of a queue over all its consumers: on the number of claimed messages, and on the claims in any period.
local MOST_CLAIMS, LONGEST_PER_MS = 1000000, 86400000

-- The number of claims, counted in the set of claims, so that the slot of a dead consumer is free when the visibility of its message ends.
local function claimsNow(inFlight, now)
  return redis.call('ZCOUNT', inFlight, '(' .. string.format('%.0f', now), '+inf')
end

-- Whether the queue is at its limit, so that the end of a claim lets another one begin.
local function isAtLimit(settings, inFlight, now)
  local most = setting(settings.concurrency, 1, MOST_CLAIMS)
  return most and claimsNow(inFlight, now) >= most
end

-- Notifies the clients that wait at the limit, which poll at once. Without the right to publish they poll with each sweep.
local function publishSlot(messages, now)
  redis.pcall('PUBLISH', string.gsub(messages, ':messages:', ':channel:', 1), string.format('%.0f', now))
end
