-- The names to remove from a sorted set of times that has more than `most`, the earliest ones; at most `limit`. The times lie in the past, so another program has
-- written those more than a minute ahead of this clock: without them the names that came now would be the last ones. So names with such times
-- are removed first, the latest first, while they are more than half of `most` or leave no room for all that `came`. Half may stay, because some are wanted, such as
-- that of a dead letter that was given back with a delay. Those from `foreign` on, a score as text, are removed first in any case. Needs shared/names.lua.
local function surplusOf(key, most, came, limit, now, foreign)
  local size = redis.pcall('ZCARD', key)
  local surplus = type(size) == 'number' and math.min(size - most, limit) or 0
  if surplus <= 0 then return {} end
  local ahead, latest, gone = redis.call('ZCOUNT', key, '(' .. string.format('%.0f', now + 60000), '+inf'), 0, {}
  if ahead > 0 then
    local room = math.min(math.floor(most / 2), math.max(0, most - came))
    latest = math.min(surplus, math.max(ahead - room, redis.call('ZCOUNT', key, foreign, '+inf')))
  end
  if latest > 0 then gone = namesOf(latest, function(many, from) return redis.call('ZRANGE', key, -from - many, -1 - from) end) end
  if latest == surplus then return gone end
  for _, name in ipairs(namesOf(surplus - latest, function(many, from) return redis.call('ZRANGE', key, from, from + many - 1) end)) do gone[#gone + 1] = name end
  return gone
end
