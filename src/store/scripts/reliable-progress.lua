-- Store the progress of a message, if its visibility has not ended and no other client has claimed it since. It replaces the last progress,
-- and is part of the message's history, so that it is removed with the message. The visibility changes only if the caller asks for it.
--
-- KEYS[1] deliveries  hash  id -> "<attempts>", in flight "<attempts> <token>"
-- KEYS[2] failures    hash  id -> the progress, and a line for each failed attempt
-- KEYS[3] config      hash  the queue's settings
-- KEYS[4] inFlight    zset  priority and id -> when its visibility ends, epoch ms
-- KEYS[5] ticks  zset  name of a repeat -> when its next message has to be prepared, epoch ms
-- KEYS[6] due0  zset  id -> when it is visible, epoch ms; priority 0
-- KEYS[7] due1  zset  id -> when it is visible, epoch ms; priority 1
-- KEYS[8] due2  zset  id -> when it is visible, epoch ms; priority 2
-- KEYS[9] due3  zset  id -> when it is visible, epoch ms; priority 3
-- KEYS[10] due4  zset  id -> when it is visible, epoch ms; priority 4
-- KEYS[11] due5  zset  id -> when it is visible, epoch ms; priority 5
-- KEYS[12] due6  zset  id -> when it is visible, epoch ms; priority 6
-- KEYS[13] due7  zset  id -> when it is visible, epoch ms; priority 7
-- KEYS[14] due8  zset  id -> when it is visible, epoch ms; priority 8
-- KEYS[15] due9  zset  id -> when it is visible, epoch ms; priority 9
-- KEYS[16] changes  stream  the queue's changes
-- KEYS[17] groupWakes  zset  group -> when it can have a turn, epoch ms
--
-- ARGV[1] channel       text     announces when messages become visible
-- ARGV[2] nowMs         integer  the caller's clock, or -1 for the server's
-- ARGV[3] visibilityMs  text     counted from now; "-1" for the queue's, "" for no change
-- ARGV[4] client        text     the caller
-- ARGV[5] member        bytes    the message's priority and id
-- ARGV[6] delivery      text     "<attempts> <token>"
-- ARGV[7] progress      bytes
--
-- returns when its visibility ends now as text, or "" when it was no longer the caller's
local deliveries, failures, config, inFlight, ticks = KEYS.deliveries, KEYS.failures, KEYS.config, KEYS.inFlight, KEYS.ticks
local due = {KEYS.due0, KEYS.due1, KEYS.due2, KEYS.due3, KEYS.due4, KEYS.due5, KEYS.due6, KEYS.due7, KEYS.due8, KEYS.due9}
local member, delivery, progress = ARGV.member, ARGV.delivery, ARGV.progress
local ESCAPES = {['\\'] = '\\\\', ['\n'] = '\\n'}

-- include shared/milliseconds.lua

-- include shared/oldest-due.lua

-- include shared/announce.lua

-- include shared/settings.lua

-- include shared/attempts.lua

-- include shared/failures.lua

-- include shared/progress-line.lua

-- include shared/change-log.lua

-- include shared/limits.lua

-- include shared/longest-visibility.lua

-- include shared/bypass-oom-check.lua

local now, id = milliseconds(ARGV.nowMs), string.sub(member, 2)
local ends = tonumber(redis.call('ZSCORE', inFlight, member) or 0)
if ends <= now or deliveryOf(deliveries, id) ~= delivery then return '' end
local settings = stored(config, 'changes', 'visibilityTimeout')
local visibility = tonumber(ARGV.visibilityMs)
if visibility and visibility < 0 then visibility = setting(settings.visibilityTimeout, 1, LONGEST_VISIBILITY) or 30000 end
local ending = visibility and math.min(now + math.min(visibility, LONGEST_VISIBILITY), 9007199254740991) or math.ceil(ends)

-- Before anything is changed, so that an error (no right to publish) leaves everything as it was.
if visibility then
  -- at its limit the queue waits for the end of a visibility, however many messages are visible
  local isFull = ending < ends and isAtLimit(stored(config, 'concurrency'), inFlight, now)
  announce(isFull and {inFlight} or {inFlight, KEYS.groupWakes, unpack(due)}, ticks, ARGV.channel, ending, now)
end
if visibility then bypassOomCheck(inFlight) end -- a refused extension would deliver the message twice
local known, attempt = historyOf(failures, id) or '', attemptsOf(delivery)
local line = string.format('~%d %.0f ', attempt, now) .. string.gsub(progress, '[\\\n]', ESCAPES) .. '\n'
redis.call('HSET', failures, id, line .. string.sub(known, #progressIn(known) + 1))
if visibility then redis.call('ZADD', inFlight, 'XX', string.format('%.0f', ending), member) end
local log = openLog(settings.changes)
-- a handler can report any number of times, so there is no entry while the stream is full
if log and not isBehind(log, KEYS.changes) then
  noteChange(log, changeHead('g', attempt), id, progress)
  writeChanges(log, KEYS.changes, config, ARGV.client)
end
return string.format('%.0f', ending)
