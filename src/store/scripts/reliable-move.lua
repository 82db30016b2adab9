-- Move messages that no consumer has from one priority of a queue to another queue of the same cluster slot, where they are
-- visible at once and begin anew: with no attempts and no failures. An id that is there already stays here.
--
-- KEYS[1] messages          hash  id -> record
-- KEYS[2] deliveries        hash  id -> "<attempts>", in flight "<attempts> <token>"
-- KEYS[3] failures          hash  id -> a line for each failed attempt
-- KEYS[4] due               zset  id -> when it is visible, epoch ms
-- KEYS[5] targetMessages    hash  the same of the other queue
-- KEYS[6] targetDue         zset  the same of the other queue
--
-- ARGV[1] targetChannel  text     announces when something becomes visible there
-- ARGV[2] nowMs          integer  the caller's clock, or -1 for the server's
-- ARGV[3] count          integer  the first so many, when no ids are given
-- ARGV[4..] ids          bytes*
--
-- returns {how many were moved, how many were passed over because their ids are there, how many stood in the schedule without being
--   messages and are gone from it: what is behind them has not been looked at}
local messages, deliveries, failures, due = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local targetMessages, targetDue = KEYS[5], KEYS[6]

-- include shared/milliseconds.lua

local now = milliseconds(ARGV[2])
local LOOKS = 1000 -- so many ids at most, so that the script is over soon
local moved, passed, gone = 0, 0, 0

local function moveOne(id)
  if not redis.call('ZSCORE', due, id) then return end
  local record = redis.call('HGET', messages, id)
  if not record then -- it is in the schedule only, and no message
    gone = gone + redis.call('ZREM', due, id)
    return
  end
  if redis.call('HEXISTS', targetMessages, id) == 1 then
    passed = passed + 1
    return
  end
  -- the record after what can fail: an id that has one there is passed over from then on
  if moved == 0 then redis.call('PUBLISH', ARGV[1], string.format('%.0f', now)) end
  redis.call('ZADD', targetDue, string.format('%.0f', now), id)
  redis.call('HSET', targetMessages, id, record)
  redis.call('ZREM', due, id)
  redis.call('HDEL', messages, id)
  redis.call('HDEL', deliveries, id)
  redis.pcall('HDEL', failures, id)
  moved = moved + 1
end

if #ARGV > 3 then
  for at = 4, #ARGV do moveOne(ARGV[at]) end
else
  local count = tonumber(ARGV[3])
  -- those that stay here must not keep the ones behind them
  for _, id in ipairs(redis.call('ZRANGE', due, 0, LOOKS - 1)) do
    if moved >= count then break end
    moveOne(id)
  end
end
return {moved, passed, gone}
