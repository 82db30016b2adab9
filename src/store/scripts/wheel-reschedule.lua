-- Give the entry of a ticket of a queue of the wheel layout a new due time and a new id. It searches a bucket page by page: until the
-- bucket is promoted, elements are only added at its end.
--
-- KEYS[1] timeouts  zset  packed entry -> due time, epoch ms
-- KEYS[2] wheel     zset  minute of a bucket -> when the bucket is promoted, epoch ms
--
-- ARGV[1] channel    text     announces the time of the next transfer, if it is earlier than before
-- ARGV[2] nowMs      integer  the caller's clock, or -1 for the server's
-- ARGV[3] due        integer  the due time in the ticket
-- ARGV[4] prefix     bytes    what the entry starts with: the length of the id, and the id
-- ARGV[5] newPrefix  bytes    the new start of the entry
-- ARGV[6] delayMs    integer  the time from now to the new due time
-- ARGV[7] from       integer  the index in the bucket to continue from
--
-- returns the new due time as text; nil when there is no such entry; -2 when the new due time exceeds 2^53-1; -3 when its bucket is being
--   promoted: continue the promotion, and call again; {index to continue from} when it was not found yet
local timeouts, wheel, due, prefix = KEYS.timeouts, KEYS.wheel, ARGV.due, ARGV.prefix

-- include shared/find-entry.lua

-- include shared/milliseconds.lua

-- include shared/next-step.lua

-- include shared/oldest-due.lua

-- include shared/wheel.lua

-- include shared/wheel-announce.lua

local now = milliseconds(ARGV.nowMs)
local newDue = now + tonumber(ARGV.delayMs)
local newDueText, newMinute = string.format('%.0f', newDue), math.floor(newDue / MINUTE)
local number, horizon = math.floor(tonumber(due) / MINUTE), horizonOf(wheel, now)
local minute = string.format('%.0f', number)
local gone = wheelKey(wheel, 'gone-' .. minute)

-- An error between the writes would leave the message twice, or lose it. So the script first runs each command that can fail, in a form
-- that changes nothing.
local isNear = newMinute <= horizon
local function prepare(entry)
  announceWheel(timeouts, wheel, ARGV.channel, isNear and newDue or promotionOf(newMinute), horizon, now)
  redis.call('ZADD', timeouts, 'XX', newDueText, entry) -- changes nothing, but needs the right and the memory
end

local function place(entry)
  if not isNear then
    local name, late = string.format('%.0f', newMinute), newDue % MINUTE
    local element = string.char(math.floor(late / 256), late % 256) .. entry
    local isThere, isNew = appendToBucket(wheel, name, {element})
    if isNew then redis.call('ZADD', wheel, string.format('%.0f', promotionOf(newMinute)), name) end
    if isThere then return end
  end
  redis.call('ZADD', timeouts, 'NX', newDueText, entry)
end

local entry, isTooLarge = findEntry(timeouts, due, prefix), newDue > 9007199254740991
if entry and isTooLarge then return '-2' end
if entry then
  local newEntry = ARGV.newPrefix .. string.sub(entry, #prefix + 1)
  prepare(newEntry)
  redis.call('ZREM', timeouts, newEntry) -- changes nothing, but needs the right
  place(newEntry)
  redis.call('ZREM', timeouts, entry)
  return newDueText
end
if not redis.call('ZSCORE', wheel, minute) and not restoreBucket(wheel, number) then return false end
if number <= horizon then return awaitsPromotion(wheel, number) and '-3' end
if redis.call('SISMEMBER', gone, prefix) == 1 then return false end
if isTooLarge then return '-2' end

local bucket, from, seen, bytes, step = wheelKey(wheel, 'wheel-' .. minute), tonumber(ARGV.from), 0, 0, 4
while seen < 1000 and bytes < 1048576 do
  local elements = redis.call('LRANGE', bucket, from, from + step - 1)
  for _, element in ipairs(elements) do
    if string.sub(element, 3, 2 + #prefix) == prefix then
      local newEntry = ARGV.newPrefix .. string.sub(element, 3 + #prefix)
      prepare(newEntry)
      redis.call('SADD', gone, prefix)
      redis.pcall('PERSIST', gone) -- as in wheel-cancel.lua
      place(newEntry)
      return newDueText
    end
    bytes = bytes + #element
  end
  if #elements < step then return false end
  from, seen = from + step, seen + step
  step = nextStep(step, seen, bytes, 1048576)
end
return {from}
