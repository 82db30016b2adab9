-- Set what holds for a queue in all processes, and let those who wait look again.
--
-- KEYS[1] config   hash    what `setConfig` and pausing say
-- KEYS[2] changes  stream  what the scripts have changed; it goes when the queue shall keep no changes any more
-- KEYS[3] completed    hash  id -> what is kept of a completed message; it goes when the queue shall keep none any more
-- KEYS[4] completedAt  zset  id -> when it was completed, epoch ms; the same
--
-- ARGV[1] channel    text    announces when something becomes visible
-- ARGV[2] ifAbsent   flag    change nothing when anything but pausing is set already
-- ARGV[3] epoch      text   the first one of the change stream, at random; one that is there stays
-- ARGV[4..] settings  text*  for each two: its name, its value or "" to remove it
--
-- returns 1, or 0 when nothing was changed
local config = KEYS[1]

-- include shared/change-log.lua

if ARGV[2] == '1' then
  local pauses = redis.call('HEXISTS', config, 'addPaused') + redis.call('HEXISTS', config, 'pollPaused')
    + redis.call('HEXISTS', config, 'grouped') + redis.call('HEXISTS', config, 'batched')
  if redis.call('HLEN', config) > pauses then return 0 end -- not by the names: there can be any number of them
end
redis.call('PUBLISH', ARGV[1], '0')
-- The epoch is behind the setting, so that the other scripts read both at once.
local function withEpoch(value)
  local log = logOf(config)
  return value .. ',' .. (log and log.epoch or ARGV[3])
end

for at = 4, #ARGV, 2 do
  local name, value = ARGV[at], ARGV[at + 1]
  if value == '' then
    redis.call('HDEL', config, name)
    if name == 'changes' then redis.call('UNLINK', KEYS[2]) end
    -- a message that ends from now on forgets nothing, so that what is kept could be taken for its end later
    if name == 'keepCompleted' then redis.call('UNLINK', KEYS[3], KEYS[4]) end
  else
    redis.call('HSET', config, name, name == 'changes' and withEpoch(value) or value)
  end
end
return 1
