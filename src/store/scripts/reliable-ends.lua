-- Read how messages have ended. Changes nothing. If results are large, it answers only for the first ids.
--
-- KEYS[1] messages      hash  id -> record
-- KEYS[2] completed     hash  id -> "<when, epoch ms>,<attempts>,<1 with a result>\n<result>"
-- KEYS[3] deadMessages  hash  the messages of the queue of dead letters
-- KEYS[4] deadFailures  hash  id -> a line for each failed attempt
-- KEYS[5] config        hash  the queue's settings
--
-- ARGV[1] nowMs          integer  the caller's clock, or -1 for the server's
-- ARGV[2] onlyCompleted  flag     whatever else there is of the ids: "c" or "g"
-- ARGV[3..] ids          bytes*
--
-- returns {1 when the queue keeps completed messages, then for each id two: "w" while the message is in the queue, "c" when it was
--   completed, "d" when it is a dead letter, "g" when there is nothing of it; and what is kept of a completed one, or the failures of a
--   dead letter}; for at least one id
local messages, completed, deadMessages, deadFailures = KEYS.messages, KEYS.completed, KEYS.deadMessages, KEYS.deadFailures
local BYTES = 1048576 -- the most bytes of one reply, except for the first result

-- include shared/milliseconds.lua

-- include shared/settings.lua

-- include shared/failures.lua

local settings = stored(KEYS.config, 'keepCompleted', 'keepCompletedFor')
local age = setting(settings.keepCompletedFor, 1)
local oldest = age and milliseconds(ARGV.nowMs) - age
local onlyCompleted = ARGV.onlyCompleted == '1'

-- Whether a record is still kept: one that is too old stays until the next acknowledgement removes it.
local function isKept(record)
  return record and not (oldest and (tonumber(string.match(string.sub(record, 1, 17), '^(%d+),')) or 0) < oldest)
end

-- How a message has ended. A completed record is newer than all dead letters of its id, because a message that dies removes it.
local function endOf(id)
  if not onlyCompleted and redis.call('HEXISTS', messages, id) == 1 then return 'w', '' end
  local record = redis.call('HGET', completed, id)
  if isKept(record) then return 'c', record end
  if not onlyCompleted and redis.pcall('HEXISTS', deadMessages, id) == 1 then return 'd', historyOf(deadFailures, id) or '' end
  return 'g', ''
end

local reply, bytes = {setting(settings.keepCompleted, 1, 1000000) and 1 or 0}, 0
for at = 3, #ARGV do
  local kind, text = endOf(ARGV[at])
  bytes = bytes + #text
  if bytes > BYTES and at > 3 then break end
  reply[#reply + 1], reply[#reply + 2] = kind, text
end
return reply
