-- The names to remove from a sorted set of times that has more than `most`, the earliest ones; at most `limit`. The times lie in the past:
-- one ahead of this clock is of another clock, or another program has written it. Without such names those that came now would be the last
-- ones. So names of more than a minute ahead are removed first, the latest first, while they are more than half of `most`; half may stay,
-- because some are wanted, such as that of a dead letter that was given back with a delay. Then those ahead, the earliest first, while they
-- leave less room than for all that `came`, or than an eighth of `most`. Those from `foreign` on, a score as text, are removed first in any
-- case. Needs shared/names.lua.
local function surplusOf(key, most, came, limit, now, foreign)
  local size = redis.pcall('ZCARD', key)
  local surplus = type(size) == 'number' and math.min(size - most, limit) or 0
  if surplus <= 0 then return {} end
  local function after(at) return redis.call('ZCOUNT', key, '(' .. string.format('%.0f', at), '+inf') end
  local ahead, latest, near, gone = after(now), 0, 0, {}
  local function take(count, first, step)
    if count <= 0 then return end
    for _, name in ipairs(namesOf(count, function(many, from)
      if step < 0 then return redis.call('ZRANGE', key, -from - many, -1 - from) end
      return redis.call('ZRANGE', key, first + from, first + from + many - 1)
    end)) do gone[#gone + 1] = name end
  end
  if ahead > 0 then
    local room = math.max(0, most - math.max(came, math.floor(most / 8)))
    latest = math.max(0, after(now + 60000) - math.min(math.floor(most / 2), room), redis.call('ZCOUNT', key, foreign, '+inf'))
    latest = math.min(surplus, latest)
    near = math.min(surplus - latest, math.max(0, ahead - latest - room))
  end
  take(latest, nil, -1)
  take(near, size - ahead, 1)
  take(surplus - latest - near, 0, 1)
  return gone
end
