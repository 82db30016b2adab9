-- Whole milliseconds: of the caller's clock if given, else of the server's.
local function milliseconds(given)
  local now = tonumber(given)
  if now >= 0 then return now end
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
