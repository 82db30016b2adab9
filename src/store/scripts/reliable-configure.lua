-- Set the configuration of a queue for all processes, and let waiting clients poll again.
--
-- KEYS[1] config   hash    the queue's settings
-- KEYS[2] changes  stream  the queue's changes; removed when the queue is to keep none any more
-- KEYS[3] completed    hash  id -> record of a completed message; removed when the queue is to keep none any more
-- KEYS[4] completedAt  zset  id -> when it was completed, epoch ms; removed likewise
--
-- ARGV[1] channel    text    announces when messages become visible
-- ARGV[2] ifAbsent   flag    change nothing when anything but pausing is set already
-- ARGV[3] epoch      text   a random first epoch of the change stream; an existing one stays
-- ARGV[4..] settings  text*  for each two: its name, its value or "" to remove it
--
-- returns 1, or 0 when nothing was changed
local config = KEYS.config

-- include shared/change-log.lua

if ARGV.ifAbsent == '1' then
  local pauses = redis.call('HEXISTS', config, 'addPaused') + redis.call('HEXISTS', config, 'pollPaused')
    + redis.call('HEXISTS', config, 'grouped') + redis.call('HEXISTS', config, 'batched')
    + redis.call('HEXISTS', config, 'tasks')
  if redis.call('HLEN', config) > pauses then return 0 end -- counted, not read: there can be any number of names
end
redis.call('PUBLISH', ARGV.channel, '0')
-- Appends the epoch to the setting, so that the other scripts read both at once.
local function withEpoch(value)
  local log = logOf(config)
  return value .. ',' .. (log and log.epoch or ARGV.epoch)
end

for at = 4, #ARGV, 2 do
  local name, value = ARGV[at], ARGV[at + 1]
  if value == '' then
    redis.call('HDEL', config, name)
    if name == 'changes' then redis.call('UNLINK', KEYS.changes) end
    -- from now on ending messages remove no records, so that an old record could later be taken for the end of a new message
    if name == 'keepCompleted' then redis.call('UNLINK', KEYS.completed, KEYS.completedAt) end
  else
    redis.call('HSET', config, name, name == 'changes' and withEpoch(value) or value)
  end
end
return 1
