-- The fields of the endpoint, which another program can have written. A key of another type is removed: the endpoint begins anew.
local function storedOf(endpoint, ...)
  local stored = redis.pcall('HMGET', endpoint, ...)
  if not stored.err then return stored end
  if not string.find(stored.err, 'WRONGTYPE', 1, true) then error(stored.err) end
  redis.call('UNLINK', endpoint)
  return {}
end

-- A time in epoch ms; 0 if it is not valid, or further ahead than `most` ms, by default the longest pause.
local function timeOf(text, now, most)
  local time = tonumber(text or nil)
  return time and time >= 0 and time <= now + (most or 86400000) and time or 0
end
