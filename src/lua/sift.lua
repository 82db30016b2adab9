-- Look through one page of a list for some elements, and remove all others of the page if asked to. Pages are counted
-- from the right end, so that consumers who take from the left meanwhile do not shift what was not looked at yet.
--
-- KEYS[1] destination  list  elements ready to be taken
--
-- ARGV[1] skip      integer  elements at the right end that earlier pages have left there
-- ARGV[2] page      integer  elements to look at
-- ARGV[3] retain    flag     remove what is not among `elements`
-- ARGV[4] mark      bytes    an element that no list holds; what is removed is overwritten with it first
-- ARGV[5..] elements  bytes*  what to look for
--
-- returns {elements removed, `skip` of the next page or -1 when this was the last, and from 0 on the positions in
--   `elements` of those that were found}
local key = KEYS[1]
local skip, page = tonumber(ARGV[1]), tonumber(ARGV[2])
local retain, mark = ARGV[3] == '1', ARGV[4]

local wanted = {}
for i = 5, #ARGV do wanted[ARGV[i]] = i - 5 end

local elements = redis.call('LRANGE', key, -skip - page, -skip - 1)
local removed, found, seen = 0, {}, {}
for i, element in ipairs(elements) do
  local position = wanted[element]
  if position then
    if not seen[position] then
      seen[position] = true
      found[#found + 1] = position
    end
  elseif retain then
    redis.call('LSET', key, i - 1 - skip - #elements, mark)
    removed = removed + 1
  end
end
if removed > 0 then
  -- from the nearer end: LREM walks up to the last one that it removes
  local fromRight = skip * 2 <= redis.call('LLEN', key)
  redis.call('LREM', key, fromRight and -removed or removed, mark)
end
local reply = {removed, #elements < page and -1 or skip + #elements - removed}
for _, position in ipairs(found) do reply[#reply + 1] = position end
return reply
