-- Whether one whole number is less than another; as texts, because any client can write ids beyond 2^53.
local function isLess(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end

-- Whether one id of a stream is before another: "<ms>-<n>".
local function isBefore(a, b)
  local aMs, aN = string.match(a, '^0*(%d+)-0*(%d+)$')
  local bMs, bN = string.match(b, '^0*(%d+)-0*(%d+)$')
  if aMs ~= bMs then return isLess(aMs, bMs) end
  return isLess(aN, bN)
end

-- A table of a reply with names and values in turn, such as that of XINFO.
local function byName(flat)
  local named = {}
  for at = 1, #flat, 2 do named[flat[at]] = flat[at + 1] end
  return named
end

-- The groups of a stream, and their number: for each its name, the number of entries read and not acknowledged, its lag if the
-- server says it, its consumers, the last entry read, whether that is after all that ever existed, and the first entry not
-- acknowledged. Only another program sets a group after all entries; such a group has read none. Empty without a stream, and with
-- more groups than any queue has: another program's 200,000 would take seconds.
local MOST_GROUPS = 1000
local function groupsOf(stream)
  local groups = {}
  local about = redis.pcall('XINFO', 'STREAM', stream)
  local count = about.err and 0 or byName(about).groups
  if count == 0 or count > MOST_GROUPS then return groups, count end
  local newest = byName(about)['last-generated-id']
  for _, flat in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
    local group = byName(flat)
    local isAhead = isBefore(newest, group['last-delivered-id'])
    -- the form with a range, because the other form lists each consumer
    local first = group.pending > 0 and redis.call('XPENDING', stream, group.name, '-', '+', 1)[1]
    groups[#groups + 1] = {
      name = group.name, pending = group.pending, lag = group.lag, consumers = group.consumers,
      last = isAhead and '0-0' or group['last-delivered-id'], isAhead = isAhead, first = first and first[1] or nil
    }
  end
  return groups, count
end
