-- The server's time; on servers whose clock stands still in a script it is the script's start.
local function microseconds()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
