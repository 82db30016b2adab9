-- Search one page of a list for some elements, and remove all others of the page if asked to. Pages are counted
-- from the right end, so that consumers who take from the left meanwhile do not shift unexamined elements. Reads in small
-- steps, as the elements can be large.
--
-- KEYS[1] destination  list  elements ready to be taken
--
-- ARGV[1] skip      integer  elements at the right end that earlier pages have left there
-- ARGV[2] page      integer  elements to examine
-- ARGV[3] bytes     integer  the page ends with the element that reaches this many bytes
-- ARGV[4] retain    flag     remove all that are not among `elements`
-- ARGV[5] mark      bytes    an element that no list holds, which overwrites elements before their removal
-- ARGV[6..] elements  bytes*  what to search for
--
-- returns {elements removed, `skip` of the next page or -1 when this was the last, and from 0 on the positions in
--   `elements` of those that were found}
local key = KEYS.destination
local skip, page, most = tonumber(ARGV.skip), tonumber(ARGV.page), tonumber(ARGV.bytes)
local retain, mark = ARGV.retain == '1', ARGV.mark

-- include shared/next-step.lua

local wanted = {}
for i = 6, #ARGV do wanted[ARGV[i]] = i - 6 end

local removed, found, seen = 0, {}, {}
local examined, bytes, step, over = 0, 0, 8, false
while examined < page and bytes < most and not over do
  step = math.min(step, page - examined)
  local elements = redis.call('LRANGE', key, -skip - examined - step, -skip - examined - 1)
  over = #elements < step
  for i = #elements, 1, -1 do
    local element = elements[i]
    examined = examined + 1
    bytes = bytes + #element
    local position = wanted[element]
    if position then
      if not seen[position] then
        seen[position] = true
        found[#found + 1] = position
      end
    elseif retain then
      redis.call('LSET', key, -skip - examined, mark)
      removed = removed + 1
    end
    if bytes >= most then
      over = over and i == 1
      break
    end
  end
  step = nextStep(step, examined, bytes, most)
end
if removed > 0 then
  -- from the nearer end: LREM walks up to the last one that it removes
  local fromRight = skip * 2 <= redis.call('LLEN', key)
  redis.call('LREM', key, fromRight and -removed or removed, mark)
end
local reply = {removed, over and -1 or skip + examined - removed}
for _, position in ipairs(found) do reply[#reply + 1] = position end
return reply
