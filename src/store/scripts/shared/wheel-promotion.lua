-- Returns the first bucket as {minute, time of its promotion}, an error about the key or "", and the number of removed members that were
-- not minutes: another program wrote them, of any size. If there may be more of them, the bucket is empty.
local function firstBucket(wheel)
  local removed, bytes = 0, 0
  while true do
    local first = redis.pcall('ZRANGE', wheel, 0, 0, 'WITHSCORES')
    if first.err then return {}, first.err, removed end
    if not first[1] or #first[1] < 13 and string.find(first[1], '^%d+$') then
      return first, removed > 0 and 'ERR removed ' .. removed .. ' members of the wheel that were not minutes' or '', removed
    end
    if removed == 100 or bytes >= 1048576 then return {}, '', removed end
    redis.call('ZREM', wheel, first[1])
    removed, bytes = removed + 1, bytes + #first[1]
  end
end

-- Restores the buckets of some minutes, from `last` back. In nearly all cases one command shows that there are none: each is promoted
-- within a second.
local function restoreBack(wheel, last, count)
  local keys = {}
  for n = 1, count do keys[n] = wheelKey(wheel, string.format('wheel-%.0f', last + 1 - n)) end
  local some = redis.pcall('EXISTS', unpack(keys))
  if type(some) ~= 'number' or some == 0 then return end -- also without the right
  for n = 1, count do restoreBucket(wheel, last + 1 - n) end
end

-- Restores the buckets whose time has come: those of the last minutes, and a part of those of the last day, since no consumer may have
-- looked in time. The times of sweeps are jittered, so each looks at a random part: it finds half of such buckets within 22 looks, and 99 %
-- within some 140.
local RECENT_MINUTES, PARTS_OF_DAY, MINUTES_OF_PART = 5, 31, 47
local function restoreLost(wheel, now)
  local last = math.floor((now + LEAD) / MINUTE)
  restoreBack(wheel, last, RECENT_MINUTES)
  restoreBack(wheel, last - RECENT_MINUTES - now % PARTS_OF_DAY * MINUTES_OF_PART, MINUTES_OF_PART)
end

-- Whether the promotion of a minute waits, because its cancelled ids are not a set, often for a moment only: until 5 s before the
-- minute, so that a large bucket is promoted in time. A bucket that is promoted much earlier, to which another program gave a time, does
-- not wait: others would wait behind it.
local WAIT_UNTIL = 5000
local function waitsForGone(start, now)
  return now >= start - LEAD and now < start - WAIT_UNTIL
end

-- Moves elements of a minute's bucket into the schedule, except cancelled ones, within `limits`. An entry that the schedule has already is
-- the same message, whose offer was sent twice: the later due time applies, as in its ticket. Elements that are not entries go there too; a
-- transfer sets them aside when they are due. Returns the number of elements taken, whether the bucket is empty, the server's error about a
-- key of another type, and whether the bucket waits for its cancelled ids.
local function promoteBucket(timeouts, wheel, minute, limits)
  local bucket, gone = wheelKey(wheel, 'wheel-' .. minute), wheelKey(wheel, 'gone-' .. minute)
  -- the size of elements is unknown before they are read: so two at first, as a transfer reads entries
  local start, taken, bytes, step, problem = tonumber(minute) * MINUTE, 0, 0, math.min(2, limits.elements), ''

  local isAnyGone = redis.pcall('EXISTS', gone)
  -- the user may not access it, or a slot of a cluster is moving, so that only declared keys can be accessed
  if type(isAnyGone) == 'table' then return 0, false, isAnyGone.err end
  isAnyGone = isAnyGone == 1
  local function isGone(entry)
    local found = redis.pcall('SISMEMBER', gone, string.sub(entry, 1, 1 + (string.byte(entry, 1) or 0)))
    if type(found) == 'table' then problem, isAnyGone = found.err, false end
    return found == 1
  end

  local length = redis.pcall('LLEN', bucket)
  if type(length) == 'table' then
    if string.sub(length.err, 1, 9) ~= 'WRONGTYPE' then return 0, false, length.err end
    problem, length = length.err, 0
  end
  if isAnyGone and length > 0 then
    local answer = redis.pcall('SISMEMBER', gone, '')
    if type(answer) == 'table' and string.sub(answer.err, 1, 9) == 'WRONGTYPE' and waitsForGone(start, limits.now) then return 0, false, answer.err, true end
  end
  local isEnough = false
  while taken < length and not isEnough do
    local elements = redis.pcall('LRANGE', bucket, 0, step - 1)
    if elements.err then return taken, false, elements.err end
    local scored, count = {}, 0
    for _, element in ipairs(elements) do
      bytes = bytes + #element
      local high, low, length = string.byte(element, 1, 3)
      local entry = length and string.sub(element, 3) or element
      if not (isAnyGone and isGone(entry)) then
        scored[count + 1] = string.format('%.0f', start + (length and high * 256 + low or 0))
        scored[count + 2] = entry
        count = count + 2
      end
    end
    if count > 0 then redis.call('ZADD', timeouts, unpack(scored)) end
    redis.call('LTRIM', bucket, #elements, -1)
    taken = taken + #elements
    step = math.min(nextStep(step, taken, bytes, limits.bytes), limits.elements - taken)
    isEnough = step <= 0 or bytes >= limits.bytes or limits.isOver()
  end
  local isEmpty = taken >= length
  if isEmpty then
    redis.call('ZREM', wheel, minute)
    redis.call('UNLINK', gone)
  end
  limits.elements, limits.bytes = limits.elements - math.max(1, taken), limits.bytes - bytes
  return taken, isEmpty, problem
end

-- Promotes the first bucket and, once it is empty, the next ones whose time has come: another program can have written any number of
-- minutes without a bucket, or with a small one, and later messages wait for each. At most 200 elements and buckets, 1 MiB, and half a
-- millisecond. Returns the number of elements and buckets done, the new first bucket, the server's error about a key, whether the first
-- bucket is blocked, whether there may be more buckets after members that are not minutes, and whether the first bucket waits for its
-- cancelled ids.
local function promoteBuckets(timeouts, wheel, bucket, reached, now)
  local began = elapsed()
  local limits = {now = now, elements = 200, bytes = 1048576, isOver = function() return not (elapsed() - began <= 500) end}
  local done, problem = 0, ''
  redis.call('ZREM', wheel, '-') -- takes no memory: at maxmemory Redis refuses only the first write of a script
  while true do
    local taken, isEmpty, why, waits = promoteBucket(timeouts, wheel, bucket[1], limits)
    done = done + taken
    if why ~= '' then problem = why end
    if not isEmpty then return done, bucket, problem, taken == 0, false, waits end
    local unreadable, removed
    bucket, unreadable, removed = firstBucket(wheel)
    done = done + 1 + removed
    if unreadable ~= '' then problem = unreadable end
    if not bucket[1] then return done, bucket, problem, false, removed > 0 end
    if tonumber(bucket[2]) > reached or limits.elements <= 0 or limits.bytes <= 0 or limits.isOver() then return done, bucket, problem, false, false end
  end
end
