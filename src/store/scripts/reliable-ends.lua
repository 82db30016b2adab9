-- Look at how messages have ended, without changing anything. Where results are large it answers for the first of the ids only.
--
-- KEYS[1] messages      hash  id -> record
-- KEYS[2] completed     hash  id -> "<when, epoch ms>,<attempts>,<1 with a result>\n<result>"
-- KEYS[3] deadMessages  hash  the messages of the queue of dead letters
-- KEYS[4] deadFailures  hash  id -> a line for each failed attempt
-- KEYS[5] deadDue       zset  id -> since when, epoch ms
-- KEYS[6] config        hash  what `setConfig` and pausing say
--
-- ARGV[1] onlyCompleted  flag    whatever else there is of the ids: "c" or "g"
-- ARGV[2..] ids           bytes*
--
-- returns {1 when the queue keeps completed messages, then for each id two: "w" while the message is in the queue, "c" when it was completed,
--   "d" when it is a dead letter, "g" when there is nothing of it; and what is kept of a completed one, or the failures of a dead letter}; for
--   at least one id
local messages, completed, deadMessages, deadFailures, deadDue = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local BYTES = 1048576 -- in one reply, but for the first

-- include shared/settings.lua

-- include shared/failures.lua

local onlyCompleted = ARGV[1] == '1'
local function endOf(id)
  if not onlyCompleted and redis.call('HEXISTS', messages, id) == 1 then return 'w', '' end
  local record = redis.call('HGET', completed, id)
  local isDead = not onlyCompleted and redis.pcall('HEXISTS', deadMessages, id) == 1
  -- of two messages of one id that followed each other the later one
  if record and isDead then
    local since = redis.pcall('ZSCORE', deadDue, id)
    local at = tonumber(string.match(record, '^(%d+),') or 0)
    if type(since) == 'string' and tonumber(since) > at then record = nil end
  end
  if record then return 'c', record end
  if isDead then return 'd', historyOf(deadFailures, id) or '' end
  return 'g', ''
end

local keeps = setting(stored(KEYS[6], 'keepCompleted').keepCompleted, 1, 1000000)
local reply, bytes = {keeps and 1 or 0}, 0
for at = 2, #ARGV do
  local kind, text = endOf(ARGV[at])
  bytes = bytes + #text
  if bytes > BYTES and at > 2 then break end
  reply[#reply + 1], reply[#reply + 2] = kind, text
end
return reply
