-- At most `most` names from a command, with `width` values for each (1 if not given): `read(many, from)` returns `many` of them from rank `from` on. The size of other programs' names is
-- unknown before they are read, and Redis copies the reply of a command once more for each large name in it. So it reads a few first and then small pages, a few again
-- after large names, and none after too many bytes of large ones. Also returns whether it left names for that reason.
local function namesOf(most, read, width)
  local FEW, PAGE, LARGE, MOST_BYTES = 2, 17, 4096, 262144 -- a hundred small names are seven commands
  width = width or 1
  local from, many, bytes = 0, math.min(most, FEW), 0
  local names = read(many, 0)
  local page = names
  while from + many < most and #page == many * width do
    local size = 0
    for n = 1, #page, width do size = size + #page[n] end
    local areLarge = size > many * LARGE
    if areLarge then bytes = bytes + size end -- any number of usual names: what a script adds, another one must be able to remove
    if bytes > MOST_BYTES then return names, true end
    from = from + many
    many = math.min(most - from, areLarge and FEW or PAGE)
    page = read(many, from)
    names.err = page.err
    local before = from * width
    for n = 1, #page do names[before + n] = page[n] end
  end
  return names, false
end
