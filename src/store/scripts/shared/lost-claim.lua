-- Whether a message that is nowhere was in flight: then its group still counts its claim, and no poll or acknowledgement ends it.
local LONGEST_DELIVERY = 64
local function hasLostClaim(deliveries, id)
  if redis.call('HSTRLEN', deliveries, id) > LONGEST_DELIVERY then return false end
  return string.find(redis.call('HGET', deliveries, id) or '', ' ', 1, true) ~= nil
end
