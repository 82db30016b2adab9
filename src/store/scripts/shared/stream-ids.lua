-- Whether one id of a stream is before another: "<ms>-<n>".
local function isBefore(a, b)
  local aMs, aN = string.match(a, '^(%d+)-(%d+)$')
  local bMs, bN = string.match(b, '^(%d+)-(%d+)$')
  aMs, bMs = tonumber(aMs), tonumber(bMs)
  if aMs ~= bMs then return aMs < bMs end
  return tonumber(aN) < tonumber(bN)
end

-- A reply such as that of XINFO, names and values in turn, as a table.
local function byName(flat)
  local named = {}
  for at = 1, #flat, 2 do named[flat[at]] = flat[at + 1] end
  return named
end

-- The groups of a stream, none where there is no stream: for each its name, how many entries it has read and not acknowledged, its lag
-- if the server says it, its consumers, the last entry it has read, and the first of those it has not acknowledged.
local function groupsOf(stream)
  local groups = {}
  for _, flat in ipairs(redis.pcall('XINFO', 'GROUPS', stream)) do
    local group = byName(flat)
    local first = group.pending > 0 and redis.call('XPENDING', stream, group.name)[2] or nil
    groups[#groups + 1] = {
      name = group.name, pending = group.pending, lag = group.lag, consumers = group.consumers, last = group['last-delivered-id'],
      first = first
    }
  end
  return groups
end
