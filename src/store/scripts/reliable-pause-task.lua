-- Pause or resume a task for all processes. Consumers keep the messages that they have. Polls set its messages aside as they meet them, and
-- bring them back after it was resumed; waiting clients begin with that at once.
--
-- KEYS[1] config      hash  the queue's settings
-- KEYS[2] taskPauses  zset  paused task -> its number
--
-- ARGV[1] channel  text   announces when messages become visible
-- ARGV[2] pause    flag   else it is resumed
-- ARGV[3] task     bytes
--
-- returns 1, or 0 when it was so before, or -1 when the most possible tasks are paused
local config, pauses, task = KEYS.config, KEYS.taskPauses, ARGV.task

-- include shared/aside.lua

-- include shared/task-numbers.lua

local number = tonumber(redis.call('ZSCORE', pauses, task) or 0)
local isPaused = number >= 1 and number <= aside.most and number % 1 == 0
local isComingBack = number > aside.resumed and number <= aside.resumed + aside.most and number % 1 == 0

if ARGV.pause == '0' then
  if not isPaused then return 0 end
  redis.call('PUBLISH', ARGV.channel, '0') -- first, so that an error (no right to publish) leaves everything as it was
  redis.call('HSET', config, 'tasks', '1')
  redis.call('ZADD', pauses, aside.resumed + number, task)
  return 1
end
if isPaused then return 0 end
local free = isComingBack and number - aside.resumed or aside.free(pauses)
if not free then return -1 end
redis.call('HSET', config, 'tasks', '1') -- without paused tasks a poll removes the setting again
redis.call('ZADD', pauses, free, task)
return 1
