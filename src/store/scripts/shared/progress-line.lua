-- The progress at the beginning of a message's history, if a consumer has reported one: "~<attempt> <epoch ms> <bytes>\n", with line feeds
-- and backslashes of the bytes escaped. It stays when the history is cut.
local function progressIn(history)
  return string.match(history, '^~[^\n]*\n') or ''
end
