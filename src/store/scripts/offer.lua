-- Add one entry to the schedule, and announce it when it became the head.
-- Sending it twice adds it once: the script pushes to the order list only if the schedule took the entry, and a repetition
-- adds nothing if the entry may have been delivered already.
--
-- KEYS[1] timeouts  zset  packed entry -> due time, epoch ms
-- KEYS[2] order     list  packed entries in offer order
--
-- ARGV[1] channel  text     announces the due time of a new head
-- ARGV[2] nowMs    integer  the caller's clock, or -1 for the server's; 0 if `delayMs` is a due time
-- ARGV[3] delayMs  integer  the time from now until the entry is due
-- ARGV[4] entry    bytes    packed entry
-- ARGV[5] ordered  flag     whether the entry is also in the order list
-- ARGV[6] undeliveredUntilMs  integer  -1 for a first attempt; for a repetition, the server's time before which the entry of
--   an earlier attempt cannot have been delivered
--
-- returns the due time as text, because clients round integers just below 2^53; -1 when another message has the same
--   bytes (draw a new id); -2 when the due time exceeds 2^53-1; -3 for a repetition that comes too late to know whether
--   an earlier attempt was delivered or never arrived
local timeouts, order = KEYS.timeouts, KEYS.order
local channel, entry = ARGV.channel, ARGV.entry

local function serverTime()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- include shared/oldest-due.lua

local undeliveredUntil = tonumber(ARGV.undeliveredUntilMs)
if undeliveredUntil >= 0 then
  local score = redis.call('ZSCORE', timeouts, entry)
  if score then
    -- The entry is written once more, because WAIT counts writes only: a script without a write would seem replicated at once.
    redis.call('ZADD', timeouts, 0, entry)
    redis.call('ZADD', timeouts, score, entry)
    return score
  end
  if serverTime() >= undeliveredUntil then return -3 end
end

local now = tonumber(ARGV.nowMs)
if now < 0 then now = serverTime() end
local due = now + tonumber(ARGV.delayMs)
if due > 9007199254740991 then return -2 end
local dueText = string.format('%.0f', due)

if redis.call('ZADD', timeouts, 'NX', dueText, entry) == 0 then return -1 end
if ARGV.ordered == '1' then
  local pushed = redis.pcall('RPUSH', order, entry)
  if type(pushed) == 'table' and pushed.err then
    redis.call('ZREM', timeouts, entry)
    return pushed
  end
end
-- A new head is announced. Only entries of this millisecond are read, because the head can be of any size.
local isHead = redis.call('ZCOUNT', timeouts, oldestDue(now > 0 and now or serverTime(), due), '(' .. dueText) == 0
if isHead and redis.call('ZCOUNT', timeouts, dueText, dueText) > 1 then
  isHead = redis.call('ZRANGEBYSCORE', timeouts, dueText, '+inf', 'LIMIT', 0, 1)[1] == entry
end
if isHead then
  local published = redis.pcall('PUBLISH', channel, dueText)
  if type(published) == 'table' and published.err then -- the user may not publish: no client would transfer the entry in time
    redis.call('ZREM', timeouts, entry)
    if ARGV.ordered == '1' then redis.call('LTRIM', order, 0, -2) end -- checks a right that transfers need too
    return published
  end
end
return dueText
