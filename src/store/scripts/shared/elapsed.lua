-- `started`: when the script began, epoch microseconds. `elapsed`: for how many microseconds it has worked. From Redis 7.2 and Valkey 7.2
-- on the clock stands still in a script; Redis from 7.4 and Valkey from 8.0 on have the processor time of the server instead. Where there
-- is neither, `elapsed` is always 0. A clock that was set back ends the work.
local started, elapsed = (function() -- a function, because Lua allows 200 local variables
  local time = redis.call('TIME')
  local start = time[1] * 1000000 + time[2]
  local processor = rawget(_G, 'os')
  if processor and processor.clock then
    local startedAt = processor.clock()
    return start, function() return (processor.clock() - startedAt) * 1000000 end
  end
  return start, function()
    local now = redis.call('TIME')
    local worked = now[1] * 1000000 + now[2] - start
    return worked < 0 and math.huge or worked
  end
end)()
