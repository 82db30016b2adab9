-- Remove a group of the change stream, and what only this group kept there; after the last group the last entry stays.
--
-- KEYS[1] config   hash    what `setConfig` and pausing say
-- KEYS[2] changes  stream  what the scripts have changed
--
-- ARGV[1] group  text
--
-- returns 1, or 0 when there was none of this name
local config, changes = KEYS[1], KEYS[2]

-- include shared/change-log.lua

-- include shared/stream-ids.lua

-- include shared/trim-changes.lua

if redis.call('EXISTS', changes) == 0 then return 0 end
local removed = redis.call('XGROUP', 'DESTROY', changes, ARGV[1])
local log = logOf(config)
if log and log.keep == 'g' then
  local groups = trimChanges(changes)
  -- The last group kept all but the last entry. It is trimmed exactly, because a stream of the smallest bound can be one node, which an
  -- approximate trim leaves; that costs Redis about 14 ms for a million short entries, 1 us for each of 5 kB.
  if removed == 1 and groups == 0 then redis.call('XTRIM', changes, 'MAXLEN', 1) end
end
return removed
