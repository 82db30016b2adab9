-- Lease a worker number to an instance, or renew its lease. No two instances have the same number at once, and a later instance draws ids of later
-- times: a number is free when the clock of Redis has passed the time up to which its ids reach.
--
-- KEYS[1] workers  any  a hash: number -> the time up to which its ids reach, epoch ms, and the token of its instance; first: where numbers without a field begin
--
-- ARGV[1] token    text     the token of the instance
-- ARGV[2] held     integer  the number that it has; -1 for none
-- ARGV[3] start    integer  where the search for a free one begins
-- ARGV[4] leaseMs  integer  how long it is leased
-- ARGV[5] count    integer  the count of numbers
--
-- returns the number, the times from which and up to which it has ids, and the time; the number is -1 when none is free
local workers, token = KEYS.workers, ARGV.token
local held, start, leaseMs, count = tonumber(ARGV.held), tonumber(ARGV.start), tonumber(ARGV.leaseMs), tonumber(ARGV.count)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Another program can have written them. No time of an instance is so far ahead, whatever was done to the clock of Redis.
local latest = now + 31622400000

-- A Redis without numbers may have lost them, and instances may still have them for one lease: ids begin after that.
local stored = redis.pcall('HGET', workers, 'first')
if type(stored) == 'table' then redis.call('UNLINK', workers) end
local first = type(stored) == 'string' and tonumber(stored)
if not first or not (first >= 0 and first <= latest) then
  first = now + leaseMs + 1
  redis.call('HSET', workers, 'first', string.format('%.0f', first))
end

local function read(number)
  local stored = redis.call('HGET', workers, number)
  local upTo, owner = string.match(stored or '', '^(%d+) (.*)$')
  upTo = tonumber(upTo)
  if not upTo or upTo > latest then
    return nil, nil
  end
  return upTo, owner
end

-- The clock of Redis can have gone back: the ids reach as far as they did.
local function take(number, from, reach)
  local upTo = math.max(now + leaseMs, from + leaseMs, reach)
  redis.call('HSET', workers, number, string.format('%.0f %s', upTo, token))
  return { number, from, upTo, now }
end

if held >= 0 then
  local reach, owner = read(held)
  if not reach or owner == token then
    return take(held, 0, reach or 0)
  end
end
local ahead
for step = 0, count - 1 do
  local number = (start + step) % count
  local reach = read(number)
  if not reach then
    return take(number, first, 0)
  end
  if now > reach then
    return take(number, reach + 1, 0)
  end
  if reach > now + 2 * leaseMs and (not ahead or reach < read(ahead)) then
    ahead = number
  end
end
-- All are leased, but no lease is that long: the clock was set back, or another program wrote it. An instance that still has the number draws no ids
-- beyond its times, and gets another number when it renews its lease.
if ahead then
  return take(ahead, read(ahead) + 1, 0)
end
return { -1, 0, 0, now }
