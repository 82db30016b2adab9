-- Remove a group of the change stream, and what only this group kept there; after the last group the last entry stays.
--
-- KEYS[1] config   hash    the queue's settings
-- KEYS[2] changes  stream  the queue's changes
--
-- ARGV[1] group  text
-- ARGV[2] from   text  "", or, to continue, the result of the last call
-- ARGV[3] most   integer  about the most entries to remove, so that no script takes long
--
-- returns {1 or 0 when there was none of this name, the first entry that has to stay when there are more to be removed, or ""}
local config, changes = KEYS.config, KEYS.changes
local group, from, most = ARGV.group, ARGV.from, tonumber(ARGV.most)

-- include shared/change-log.lua

-- include shared/stream-ids.lua

-- include shared/trim-changes.lua

if redis.call('EXISTS', changes) == 0 then return {0, ''} end
local removed = from == '' and redis.call('XGROUP', 'DESTROY', changes, group) or 0
local log = logOf(config)
if not log or log.keep ~= 'g' then return {removed, ''} end
local first, groups = firstKept(changes)
if groups == 0 and removed == 1 then -- the last group kept all but the last entry
  local last = redis.call('XREVRANGE', changes, '+', '-', 'COUNT', 1)[1]
  first = last and last[1]
elseif from ~= '' and (groups == 0 or (first and isBefore(from, first))) then
  first = from -- newer entries stay, and those that a newer group needs
end
if not first then return {removed, ''} end
-- whole nodes of the stream within the limit, and then exactly, because a stream of few entries can be one node
if redis.call('XTRIM', changes, 'MINID', '~', first, 'LIMIT', most) > most / 2 then return {removed, first} end
redis.call('XTRIM', changes, 'MINID', first)
return {removed, ''}
