-- Set what holds for a queue in all processes, and let those who wait look again.
--
-- KEYS[1] config  hash  what `setConfig` and pausing say
--
-- ARGV[1] channel    text    announces when something becomes visible
-- ARGV[2] ifAbsent   flag    change nothing when anything but pausing is set already
-- ARGV[3..] settings  text*  for each two: its name, its value or "" to remove it
--
-- returns 1, or 0 when nothing was changed
local config = KEYS[1]
if ARGV[2] == '1' then
  local pauses = redis.call('HEXISTS', config, 'addPaused') + redis.call('HEXISTS', config, 'pollPaused')
  if redis.call('HLEN', config) > pauses then return 0 end -- not by the names: there can be any number of them
end
redis.call('PUBLISH', ARGV[1], '0')
for at = 3, #ARGV, 2 do
  if ARGV[at + 1] == '' then redis.call('HDEL', config, ARGV[at]) else redis.call('HSET', config, ARGV[at], ARGV[at + 1]) end
end
return 1
