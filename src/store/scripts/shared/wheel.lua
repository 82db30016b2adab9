local MINUTE, LEAD = 60000, 45000

-- The other keys of a wheel, "redelayed:<part>:{N}" for the wheel "redelayed:wheel:{N}": the hash tag puts them into its slot.
local function wheelKey(wheel, part)
  return 'redelayed:' .. part .. string.sub(wheel, 16)
end

-- Appends elements to the bucket of a minute. Returns whether that was possible, and whether the bucket is new, so that the wheel lacks it.
-- The expiry that another program has set on an older one would delete these elements too, so it is removed.
local function appendToBucket(wheel, minute, elements)
  local bucket = wheelKey(wheel, 'wheel-' .. minute)
  local length = redis.pcall('RPUSH', bucket, unpack(elements))
  if type(length) ~= 'number' then return false, false end
  if length == #elements then return true, true end
  redis.pcall('PERSIST', bucket)
  return true, false
end

-- When the bucket of a minute is promoted: before its first message is due, and not at a whole minute, when most messages are due.
local function promotionOf(minute)
  return minute * MINUTE - LEAD
end

-- Puts the bucket of a minute into the wheel again, if there is one: another program, or an eviction, has removed its minute there. Returns
-- whether there is one.
local function restoreBucket(wheel, minute)
  local name = string.format('%.0f', minute)
  local length = redis.pcall('LLEN', wheelKey(wheel, 'wheel-' .. name))
  if type(length) ~= 'number' or length == 0 then return false end
  redis.pcall('ZREM', wheel, '-') -- takes no memory: at maxmemory Redis refuses only the first write of a script
  return type(redis.pcall('ZADD', wheel, string.format('%.0f', promotionOf(minute)), name)) == 'number'
end

-- Whether a minute up to the horizon can have messages that are still to be promoted. Restores its time if it is later than that of its
-- promotion: another program has written it, and no promotion would take the minute.
local function awaitsPromotion(wheel, minute)
  local name = string.format('%.0f', minute)
  local score = tonumber(redis.call('ZSCORE', wheel, name) or 'inf')
  if score <= promotionOf(minute) or restoreBucket(wheel, minute) then return true end
  return redis.pcall('LLEN', wheelKey(wheel, 'wheel-' .. name)) ~= 0 -- a key of another type may have them
end

-- The last minute whose messages are in the schedule or on their way there; it does not decrease. Only later minutes get buckets, so that
-- until a bucket is promoted all messages of its minute are in it, also after the clock was set back. The key expires after a day without
-- use. A horizon that is more than a day ahead is another program's, or the clock was set back by more: it is overwritten, because no
-- minute up to it would get a bucket.
local MOST_AHEAD = 1440
local function horizonOf(wheel, now)
  local key, horizon = wheelKey(wheel, 'horizon'), math.floor((now + LEAD) / MINUTE)
  local before = redis.pcall('GETRANGE', key, 0, 20) -- another program can have written any size
  before = type(before) == 'string' and tonumber(before)
  if before and before >= horizon and before <= horizon + MOST_AHEAD then return before end
  redis.pcall('SET', key, string.format('%.0f', horizon), 'EX', 86400) -- refused where memory is short, or while a slot of a cluster moves
  return horizon
end
