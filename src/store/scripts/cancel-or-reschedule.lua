-- Find the pending entry of a ticket by its due time and id, and remove it or give it a new due time.
-- When the head changes, the new head is announced, so that no client wakes up for the old one. A new due time is published before it is
-- written, so that an error (no right to publish) leaves everything as it was; a cancelled message needs no announcement.
--
-- KEYS[1] timeouts  zset  packed entry -> due time, epoch ms
-- KEYS[2] order     list  packed entries in offer order
--
-- ARGV[1] channel  text     announces the due time of the new head
-- ARGV[2] nowMs    integer  the caller's clock, or -1 for the server's
-- ARGV[3] due      integer  the due time in the ticket
-- ARGV[4] prefix   bytes    what the entry starts with: the length of the id, and the id; or 8 bytes of the old format
-- ARGV[5] delayMs  integer  the time from now to the new due time; -1 removes the entry
--
-- returns the new due time as text, or 0 for a removed entry; nil when there is no such entry; -2 when the new due time
--   exceeds 2^53-1
local timeouts, order = KEYS.timeouts, KEYS.order
local due, prefix, delay = ARGV.due, ARGV.prefix, tonumber(ARGV.delayMs)

-- include shared/find-entry.lua

-- include shared/milliseconds.lua

-- include shared/oldest-due.lua

-- Whether the entry is the head. An entry with a negative due time does not count: a transfer sets it aside. Counts the earlier entries,
-- and reads only those of its millisecond, because the head can be of any size.
local function isHead(entry)
  if tonumber(due) < 0 or redis.call('ZCOUNT', timeouts, 0, '(' .. due) > 0 then return false end
  if redis.call('ZCOUNT', timeouts, due, due) == 1 then return true end
  return redis.call('ZRANGEBYSCORE', timeouts, due, '+inf', 'LIMIT', 0, 1)[1] == entry
end

local entry = findEntry(timeouts, due, prefix)
if not entry then return false end

-- The due time of the entry after this one as text, if this one is the head.
local function secondDue()
  local at = isHead(entry) and tonumber(redis.call('ZRANGEBYSCORE', timeouts, 0, '+inf', 'WITHSCORES', 'LIMIT', 1, 1)[2])
  return at and string.format('%.0f', math.floor(at))
end

if delay < 0 then
  -- an id of 8 or 16 bytes, with its length before it, or one of the old format is in the order list
  local isInOrder = #prefix == 8 or #prefix == 9 or #prefix == 17
  local second = secondDue()
  redis.call('ZREM', timeouts, '-') -- changes nothing, but fails here without the right
  if isInOrder then redis.call('LREM', order, 1, entry) end
  redis.call('ZREM', timeouts, entry)
  if second then redis.pcall('PUBLISH', ARGV.channel, second) end
  return 0
end

local now = milliseconds(ARGV.nowMs)
local newDue = now + delay
if newDue > 9007199254740991 then return -2 end
local newDueText, oldest = string.format('%.0f', newDue), oldestDue(now, newDue)
-- Counts the other messages that are due between `oldest` and the new due time: if there are any, clients already wake up in time.
local isOwn = tonumber(due) >= oldest and tonumber(due) <= newDue
-- Changes no score. Fails here without the right or the memory: otherwise followers would wait for a later time that was not stored.
redis.call('ZADD', timeouts, 'XX', due, entry)
local others = redis.call('ZCOUNT', timeouts, oldest, newDueText) - (isOwn and 1 or 0)
local announced = others == 0 and newDueText or secondDue()
if announced then redis.call('PUBLISH', ARGV.channel, announced) end
redis.call('ZADD', timeouts, 'XX', newDueText, entry)
return newDueText
